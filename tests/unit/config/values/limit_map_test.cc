#include "catch.h"
#include "config/settings.h"
#include "unit/config/environment.h"

using namespace ration::config;

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;
const DeviceIdentity kFirst = device(0, "GPU-1f2e3d4c-0000-0000-0000-000000000001");
const DeviceIdentity kSecond = device(1, "GPU-1f2e9999-0000-0000-0000-000000000002");

struct Row {
  std::string value;
  std::uint64_t first;  // on kFirst
  std::uint64_t second;
};

}  // namespace

TEST_CASE("without a limit the whole device may be used") {
  const Reading reading = read({"PATH=/bin", "HOME=/"});
  CHECK(reading.problems.empty());
  CHECK_FALSE(reading.settings.limit_on(kFirst).asked);
  CHECK(reading.settings.limit_on(kFirst).bytes == kSixteenGiB);
  CHECK(reading.settings.origins.empty());
}

TEST_CASE("a valid limit holds to the byte on the devices that it names") {
  const Row rows[] = {
      {"8GiB", 8 * kGiB, 8 * kGiB},
      {"0.4", 6871947673, 6871947673},
      {"100GiB", kSixteenGiB, kSixteenGiB},
      {"0=8GiB", 8 * kGiB, kSixteenGiB},
      {"1=8GiB", kSixteenGiB, 8 * kGiB},
      {"0=8GiB,1=25%", 8 * kGiB, 4 * kGiB},
      {"0=8GiB,0=8192MiB", 8 * kGiB, kSixteenGiB},
      {"GPU-1f2e3=50%", 8 * kGiB, kSixteenGiB},
      {"gpu-1F2E3=50%", 8 * kGiB, kSixteenGiB},
      {"MIG-1f2e9=50%", kSixteenGiB, 8 * kGiB},
      {"GPU-1f2e3d4c-0000-0000-0000-000000000001=2g,1=3g", 2 * kGiB, 3 * kGiB},
      {"7=2g", kSixteenGiB, kSixteenGiB},
  };
  for (const Row &row : rows) {
    INFO(row.value);
    const Reading reading = read({"RATION_LIMIT=" + row.value});
    INFO(reading.lines());
    CHECK(reading.problems.empty());
    CHECK(reading.settings.limit_on(kFirst).bytes == row.first);
    CHECK(reading.settings.limit_on(kSecond).bytes == row.second);
    CHECK(reading.settings.limit_on(kFirst).asked == (row.first < kSixteenGiB || row.value == "100GiB"));
  }
}

TEST_CASE("a malformed limit gets one line and the strictest reading") {
  const Row rows[] = {
      {"", kStrictest, kStrictest},
      {"1", kStrictest, kStrictest},
      {"8Gib", kStrictest, kStrictest},
      {"0=8GiB,0=4GiB", 4 * kGiB, kStrictest},  // contradictory: the smaller, and 75 % everywhere
      {"0=4GiB,0=8GiB", 4 * kGiB, kStrictest},
      {"0=15GiB,0=14GiB", kStrictest, kStrictest},
      {"0=8GiB,1=x", 8 * kGiB, kStrictest},
      {"0=x,1=y", kStrictest, kStrictest},
      {"0=8GiB,", 8 * kGiB, kStrictest},
      {",0=8GiB", 8 * kGiB, kStrictest},
      {"0=8GiB,,1=2GiB", 8 * kGiB, 2 * kGiB},
      {",", kStrictest, kStrictest},
      {"=", kStrictest, kStrictest},
      {"=8GiB", kStrictest, kStrictest},
      {"0=", kStrictest, kStrictest},
      {"0==8GiB", kStrictest, kStrictest},
      {"0=8GiB;1=2GiB", kStrictest, kStrictest},
      {"0=8GiB, 1= 2GiB", 8 * kGiB, kStrictest},
      {"0:8GiB", kStrictest, kStrictest},
      {"-1=8GiB", kStrictest, kStrictest},
      {"99999999999999999999=8GiB", kStrictest, kStrictest},
      {"cuda:0=8GiB", kStrictest, kStrictest},
      {"GPU-=8GiB", kStrictest, kStrictest},
      {"GPU=8GiB", kStrictest, kStrictest},
      {"GPU-xyz=8GiB", kStrictest, kStrictest},
      {"GPU--1=8GiB", kStrictest, kStrictest},
      {"1f2e3d4c=8GiB", kStrictest, kStrictest},
      {"8GiB,4GiB", kStrictest, kStrictest},
      {"0,4", kStrictest, kStrictest},
      {"8GiB,0=4GiB", 4 * kGiB, kStrictest},
  };
  for (const Row &row : rows) {
    INFO(row.value);
    const Reading reading = read({"RATION_LIMIT=" + row.value});
    INFO(reading.lines());
    REQUIRE(reading.problems.size() == 1);
    const Problem &problem = reading.problems.front();
    CHECK(problem.key == "limit");
    CHECK(problem.fatal_for_cli);
    CHECK(problem.line.find("RATION_LIMIT=" + row.value + ": ") == 0);
    CHECK(problem.line.find('\n') == std::string::npos);
    CHECK(reading.settings.limit_on(kFirst).asked);
    CHECK(reading.settings.limit_on(kFirst).bytes == row.first);
    CHECK(reading.settings.limit_on(kSecond).bytes == row.second);
  }
}

TEST_CASE("of limit, reserve and a group limit without a group the smallest holds") {
  CHECK(read({"RATION_RESERVE=4GiB"}).settings.limit_on(kFirst).bytes == 12 * kGiB);
  CHECK(read({"RATION_RESERVE=25%"}).settings.limit_on(kFirst).bytes == 12 * kGiB);
  CHECK(read({"RATION_RESERVE=4GiB", "RATION_LIMIT=8GiB"}).settings.limit_on(kFirst).bytes == 8 * kGiB);
  CHECK(read({"RATION_RESERVE=12GiB", "RATION_LIMIT=8GiB"}).settings.limit_on(kFirst).bytes == 4 * kGiB);
  CHECK(read({"RATION_GROUP_LIMIT=3GiB", "RATION_LIMIT=8GiB"}).settings.limit_on(kFirst).bytes == 3 * kGiB);
  const Settings::Limit nothing = read({"RATION_RESERVE=17GiB"}).settings.limit_on(kFirst);
  CHECK(nothing.asked);
  CHECK(nothing.bytes == 0);
  CHECK_FALSE(read({"RATION_RESERVE=0"}).settings.limit_on(kFirst).asked);
}

TEST_CASE("a malformed reserve or group limit is the strictest reading") {
  for (const char *entry : {"RATION_RESERVE=x", "RATION_RESERVE=", "RATION_GROUP_LIMIT=1", "RATION_GROUP_LIMIT="}) {
    INFO(entry);
    const Reading alone = read({entry});
    CHECK(alone.problems.size() == 1);
    CHECK(alone.settings.limit_on(kFirst).bytes == kStrictest);
    CHECK(read({entry, "RATION_LIMIT=2GiB"}).settings.limit_on(kFirst).bytes == 2 * kGiB);
  }
}

TEST_CASE("a named file that cannot be read is the strictest reading") {
  const Reading file = read({"RATION_CONFIG=/nowhere/ration.json"});
  REQUIRE(file.problems.size() == 1);
  CHECK(file.problems[0].fatal_for_cli);
  CHECK(file.settings.limit_on(kFirst).asked);
  CHECK(file.settings.limit_on(kFirst).bytes == kStrictest);
  CHECK(read({"RATION_CONFIG=x", "RATION_LIMIT=1g"}).settings.limit_on(kFirst).bytes == kGiB);
  CHECK_FALSE(read({"RATION_CONFIG="}).settings.limit_on(kFirst).asked);
}

TEST_CASE("whether any limit is set is known without a device") {
  for (const char *entry : {"RATION_LIMIT=1g", "RATION_LIMIT=7=1g", "RATION_LIMIT=x",
                            "RATION_LIMIT=", "RATION_RESERVE=1g", "RATION_GROUP_LIMIT=1g", "RATION_CONFIG=x"}) {
    INFO(entry);
    CHECK(read({entry}).settings.limit_asked());
  }
  for (const char *entry : {"RATION_RESERVE=0", "RATION_MODE=direct", "RATION_MODE=x", "RATION_LIMITS=1g"}) {
    INFO(entry);
    CHECK_FALSE(read({entry}).settings.limit_asked());
  }
}

TEST_CASE("75 % of a device is truncated and does not overflow") {
  const Settings settings = read({"RATION_LIMIT=x"}).settings;
  CHECK(settings.limit_on(device(0, "", 0)).bytes == 0);
  CHECK(settings.limit_on(device(0, "", 1)).bytes == 0);
  CHECK(settings.limit_on(device(0, "", 3)).bytes == 2);
  CHECK(settings.limit_on(device(0, "", 7)).bytes == 5);
  CHECK(settings.limit_on(device(0, "", ~0ull)).bytes == 13835058055282163711ull);
}

TEST_CASE("a limit by UUID holds on a device without a known UUID") {
  const Settings settings = read({"RATION_LIMIT=GPU-1f2e3=4GiB"}).settings;
  CHECK(settings.limit_on(device(0)).bytes == 4 * kGiB);
}

TEST_CASE("a UUID prefix that fits two devices is the strictest reading on both") {
  Reading reading = read({"RATION_LIMIT=GPU-1f2e=14GiB"});
  CHECK(reading.problems.empty());
  reading.settings.resolve_devices({kFirst, kSecond}, reading.problems);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line.find("RATION_LIMIT=GPU-1f2e=14GiB: \"GPU-1f2e\" fits 2 devices") == 0);
  CHECK(reading.settings.limit_on(kFirst).bytes == kStrictest);
  CHECK(reading.settings.limit_on(kSecond).bytes == kStrictest);
}

TEST_CASE("a UUID prefix that fits one device equals the whole UUID") {
  Reading reading = read({"RATION_LIMIT=GPU-1f2e3=14GiB"});
  reading.settings.resolve_devices({kFirst, kSecond}, reading.problems);
  CHECK(reading.problems.empty());
  CHECK(reading.settings.limit_on(kFirst).bytes == 14 * kGiB);
}

TEST_CASE("two limits of one device by ordinal and by UUID are a contradiction") {
  Reading reading = read({"RATION_LIMIT=0=14GiB,GPU-1f2e3=15GiB"});
  reading.settings.resolve_devices({kFirst, kSecond}, reading.problems);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.settings.limit_on(kFirst).bytes == kStrictest);

  Reading agreed = read({"RATION_LIMIT=0=8GiB,GPU-1f2e3=50%"});
  agreed.settings.resolve_devices({kFirst, kSecond}, agreed.problems);
  CHECK(agreed.problems.empty());
  CHECK(agreed.settings.limit_on(kFirst).bytes == 8 * kGiB);
}

TEST_CASE("an absent device gets a line, and other limits are unchanged") {
  Reading reading = read({"RATION_LIMIT=0=8GiB,5=2GiB"});
  reading.settings.resolve_devices({kFirst, kSecond}, reading.problems);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line ==
        "RATION_LIMIT=0=8GiB,5=2GiB: there is no device \"5\", only 0 (GPU-1f2e3d4c) and 1 (GPU-1f2e9999); that limit "
        "has no effect");
  CHECK_FALSE(reading.problems[0].fatal_for_cli);
  CHECK(reading.settings.limit_on(kFirst).bytes == 8 * kGiB);
  CHECK(reading.settings.limit_on(kSecond).bytes == kSixteenGiB);
}

TEST_CASE("all absent devices of a limit get one line") {
  Reading reading = read({"RATION_LIMIT=5=2GiB,gpu-77=2GiB,0=1GiB,6=50%"});
  reading.settings.resolve_devices({device(0), device(1)}, reading.problems);
  REQUIRE(reading.problems.size() == 2);
  CHECK(reading.problems[1].sentence == "there are no devices \"5\" and \"6\", only 0 and 1");
  std::string many = "RATION_LIMIT=0=1GiB";
  std::vector<DeviceIdentity> devices;
  for (int i = 100; i < 140; ++i) {
    many += "," + std::to_string(i) + "=1GiB";
    devices.push_back(device(i - 100, "GPU-1f2e3d4c-" + std::to_string(i)));
  }
  Reading long_list = read({many});
  long_list.settings.resolve_devices(devices, long_list.problems);
  REQUIRE(long_list.problems.size() == 1);
  const std::string &sentence = long_list.problems[0].sentence;
  CHECK(sentence.find("\"115\" and 24 more, only 0 (GPU-1f2e3d4c-100), 1 (GPU-1f2e3d4c-101)") != std::string::npos);
  CHECK(sentence.find("15 (GPU-1f2e3d4c-115) and 24 more") != std::string::npos);
}

TEST_CASE("without a visible device every named one is absent, and a limit of all is not") {
  Reading reading = read({"RATION_LIMIT=0=2GiB"});
  reading.settings.resolve_devices({}, reading.problems);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].sentence == "there is no device \"0\", and no other");
  Reading all = read({"RATION_LIMIT=2GiB"});
  all.settings.resolve_devices({}, all.problems);
  CHECK(all.problems.empty());
}

TEST_CASE("a reserve that leaves nothing of a device gets a line") {
  for (const auto &[written, lines] : {std::pair{"16GiB", 2U}, {"100%", 2U}, {"15GiB", 0U}, {"0", 0U}}) {
    INFO(written);
    Reading reading = read({std::string("RATION_RESERVE=") + written});
    reading.settings.resolve_devices({kFirst, kSecond}, reading.problems);
    REQUIRE(reading.problems.size() == lines);
    for (const auto &problem : reading.problems) {
      CHECK(problem.line.find(std::string("RATION_RESERVE=") + written + ": it leaves no memory on device ") == 0);
    }
  }
}

TEST_CASE("the line about an item shows it once, and names the separator that was likely meant") {
  const auto line_of = [](const std::string &value) { return read({"RATION_LIMIT=" + value}).problems.at(0).line; };
  CHECK(line_of("0=x").find("RATION_LIMIT=0=x: it does not begin with a number") == 0);
  CHECK(line_of("0=8GiB,1=x").find("RATION_LIMIT=0=8GiB,1=x: \"1=x\": it does not begin") == 0);
  CHECK(line_of("0=1GiB;1=2GiB").find("items are separated by commas; likely meant: 0=1GiB,1=2GiB") !=
        std::string::npos);
}

TEST_CASE("without UUIDs from the driver a limit by UUID gets a line and holds on every device") {
  Reading reading = read({"RATION_LIMIT=GPU-1f2e3=4GiB"});
  reading.settings.resolve_devices({device(0), device(1)}, reading.problems);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line.find("reports no UUIDs") != std::string::npos);
  CHECK(reading.settings.limit_on(device(0)).bytes == 4 * kGiB);
  CHECK(reading.settings.limit_on(device(1)).bytes == 4 * kGiB);
}

TEST_CASE("a limit that the environment has twice is a contradiction; all items that can be parsed hold") {
  const Reading reading = read({"RATION_LIMIT=8GiB", "RATION_LIMIT=4GiB"});
  CHECK(reading.problems.size() == 1);
  CHECK(read({"RATION_LIMIT=8GiB", "RATION_LIMIT=0=4GiB,x"}).settings.limit_on(kFirst).bytes == 4 * kGiB);
  CHECK(reading.settings.limit_on(kFirst).bytes == 4 * kGiB);
  CHECK(read({"RATION_LIMIT=8GiB", "RATION_LIMIT=8GiB"}).problems.empty());
}
