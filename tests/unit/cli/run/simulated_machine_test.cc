#include "cli/run/simulated_machine.h"

#include "catch.h"

using ration::cli::parse_simulated_devices;
using ration::cli::SimulatedDevices;

TEST_CASE("simulated devices are a count and a size") {
  const std::pair<const char *, const char *> rows[] = {
      {"8GiB", "1x8GiB"},      {"2x8GiB", "2x8GiB"},           {"2\u00d78GiB", "2x8GiB"},
      {"2X8GiB", "2x8GiB"},    {"2 x 8GiB", "2x8GiB"},         {"8GiB, 4GiB", "1x8GiB,1x4GiB"},
      {"16x1g", "16x1GiB"},    {"8GiB,4GiB", "1x8GiB,1x4GiB"}, {"2x8GB,1x1500000000", "2x7812500KiB,1x1500000000"},
      {"1.5GiB", "1x1536MiB"}, {"2x8gib", "2x8GiB"},           {"2x8 GB", "2x7812500KiB"},
      {"16x1TiB", "16x1TiB"},
  };
  for (const auto &[text, expected] : rows) {
    INFO(text);
    const auto devices = parse_simulated_devices(text);
    REQUIRE(std::holds_alternative<SimulatedDevices>(devices));
    CHECK(std::get<SimulatedDevices>(devices).text == expected);
  }
}

TEST_CASE("an invalid machine is refused with the reason") {
  const std::pair<const char *, const char *> rows[] = {
      {"", "it is empty; write, for example, 16GiB, 2x8GiB"},
      {"nonsense", "it does not begin with a number; write, for example, 16GiB, 2x8GiB"},
      {"0x8GiB", "there must be at least 1 device"},
      {"0x10", "there must be at least 1 device"},
      {"x8GiB", "a number of devices"},
      {"-1x8GiB", "a number of devices"},
      {"\u00d78GiB", "a number of devices"},
      {"999x8GiB", "at most 16 devices; write, for example,"},
      {"17x8GiB", "at most 16 devices"},
      {"9x1g,8x1g", "at most 16 devices"},
      {"99999999999999999999x8GiB", "at most 16 devices"},
      {"2x", "the size of a device is missing"},
      {"2x8Gib", "likely meant: 8GiB"},
      {"2x50%", "a percentage has no meaning here"},
      {"0.5", "a percentage has no meaning here"},
      {"100", "a device of 100 bytes is too small; the smallest has 1MiB; likely meant: 100GiB or 100MiB"},
      {"1", "a device of 1 byte is too small; the smallest has 1MiB; likely meant: 1GiB or 1MiB"},
      {"2x8", "likely meant: 2x8GiB or 2x8MiB"},
      {"0", "a device of 0 bytes is too small; the smallest has 1MiB; write"},
      {"512k", "a device of 524288 bytes is too small"},
      {"-8GiB", "cannot be negative; write, for example, 16GiB, 2x8GiB"},
      {"17TiB", "at most 16TiB, all devices together; write"},
      {"4x4TiB,1MiB", "at most 16TiB"},
      {"16777215TiB", "at most 16TiB"},
      {"99999999TiB", "64 bits can hold; write, for example, 16GiB, 2x8GiB"},
      {"8GiB,", "likely meant: 8GiB"},
      {",8GiB,,4GiB", "likely meant: 8GiB,4GiB"},
      {",", "a size is missing in the list; write"},
      {"8GiB,x", "\"x\": it does not begin with a number of devices"},
      {"2x2x8GiB", "not a unit"},
      {"2*8GiB", "likely meant: 2x8GiB"},
      {"8GiB;4GiB", "likely meant: 8GiB,4GiB"},
  };
  for (const auto &[text, says] : rows) {
    INFO(text);
    const auto devices = parse_simulated_devices(text);
    REQUIRE(std::holds_alternative<std::string>(devices));
    INFO(std::get<std::string>(devices));
    CHECK(std::get<std::string>(devices).find(says) != std::string::npos);
  }
}

TEST_CASE("an invalid machine is named as the option and quoted") {
  using ration::cli::error_in_simulation;
  CHECK(error_in_simulation(std::nullopt).empty());
  CHECK(error_in_simulation("2x8GiB").empty());
  CHECK(error_in_simulation("8GiB,").starts_with("--sim 8GiB,: it is not a list of devices"));
  CHECK(error_in_simulation(std::string(1 << 20, '9')).size() < 400);
}
