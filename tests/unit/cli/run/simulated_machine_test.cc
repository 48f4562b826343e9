#include "cli/run/simulated_machine.h"

#include "catch.h"

using ration::cli::parse_simulated_devices;
using ration::cli::SimulatedDevices;

TEST_CASE("simulated devices are a count and a size") {
  const std::pair<const char *, const char *> rows[] = {
      {"8GiB", "1x8GiB"},      {"2x8GiB", "2x8GiB"},           {"2\u00d78GiB", "2x8GiB"},
      {"16x1g", "16x1GiB"},    {"8GiB,4GiB", "1x8GiB,1x4GiB"}, {"2x8GB,1x1500000000", "2x7812500KiB,1x1500000000"},
      {"1.5GiB", "1x1536MiB"},
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
      {"", "empty"},
      {"0x8GiB", "a number of devices"},
      {"x8GiB", "a number of devices"},
      {"-1x8GiB", "a number of devices"},
      {"17x8GiB", "at most 16"},
      {"9x1g,8x1g", "at most 16"},
      {"99999999999999999999x8GiB", "a number of devices"},
      {"2x", "empty"},
      {"2x8Gib", "likely meant: 8GiB"},
      {"2x50%", "is a share"},
      {"0.5", "is a share"},
      {"2", "below the smallest"},
      {"8GiB,", "empty"},
      {"2x2x8GiB", "not a unit"},
      {"2X8GiB", "not a unit"},
  };
  for (const auto &[text, says] : rows) {
    INFO(text);
    const auto devices = parse_simulated_devices(text);
    REQUIRE(std::holds_alternative<std::string>(devices));
    INFO(std::get<std::string>(devices));
    CHECK(std::get<std::string>(devices).find(says) != std::string::npos);
  }
}
