// Group limits, with and without a group.
#include <unistd.h>

#include "catch.h"
#include "config/settings.h"
#include "unit/config/environment.h"

using namespace ration::config;

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;
const DeviceIdentity kFirst = device(0, "GPU-1f2e3d4c-0000-0000-0000-000000000001");
const DeviceIdentity kSecond = device(1, "GPU-1f2e9999-0000-0000-0000-000000000002");
const std::string kOuter = "0123456789abcdef";
const std::string kInner = "fedcba9876543210";

using Kind = Settings::Group::Kind;
using Stated = std::optional<std::uint64_t>;

Stated stated(const Reading &reading, std::size_t group, const DeviceIdentity &on = kFirst) {
  return reading.settings.group_limit_on(reading.settings.groups.at(group), on);
}

// The process itself has no limit.
bool is_free(const Reading &reading) {
  return !reading.settings.limit_on(kFirst).asked;
}

}  // namespace

TEST_CASE("a group limit does not limit the process itself") {
  const Reading reading = read({"RATION_GROUP=lab", "RATION_GROUP_LIMIT=3GiB"});
  CHECK(reading.problems.empty());
  REQUIRE(reading.settings.groups.size() == 1);
  CHECK(reading.settings.groups[0].kind == Kind::kNamed);
  CHECK(reading.settings.groups[0].name == "lab");
  CHECK(stated(reading, 0) == 3 * kGiB);
  CHECK(is_free(reading));
}

TEST_CASE("a group limit holds beside the process's own") {
  const Reading reading = read({"RATION_GROUP=lab", "RATION_GROUP_LIMIT=3GiB", "RATION_LIMIT=2GiB"});
  CHECK(reading.settings.limit_on(kFirst).bytes == 2 * kGiB);
  CHECK(stated(reading, 0) == 3 * kGiB);
}

TEST_CASE("a group without a limit states none") {
  const Reading reading = read({"RATION_GROUP=lab"});
  CHECK(reading.problems.empty());
  CHECK(stated(reading, 0) == std::nullopt);
  CHECK(is_free(reading));
}

TEST_CASE("a group limit may be a share or name devices, and is at most the device") {
  CHECK(stated(read({"RATION_GROUP=a", "RATION_GROUP_LIMIT=40%"}), 0) == 6871947673);
  CHECK(stated(read({"RATION_GROUP=a", "RATION_GROUP_LIMIT=100GiB"}), 0) == kSixteenGiB);
  const Reading reading = read({"RATION_GROUP=a", "RATION_GROUP_LIMIT=0=8GiB,GPU-1f2e9=50%"});
  CHECK(stated(reading, 0, kFirst) == 8 * kGiB);
  CHECK(stated(reading, 0, kSecond) == 8 * kGiB);
  CHECK(stated(reading, 0, device(2, "GPU-77")) == std::nullopt);
}

TEST_CASE("a malformed group limit is the strictest reading for the group, with one line") {
  const std::pair<const char *, std::uint64_t> rows[] = {
      {"", kStrictest},         {"1", kStrictest},         {"8Gib", kStrictest},
      {"0=8GiB,1=x", 8 * kGiB}, {"0=15GiB,x", kStrictest}, {"0=8GiB,0=4GiB", 4 * kGiB},
  };
  for (const auto &[value, held] : rows) {
    INFO(value);
    const Reading reading = read({"RATION_GROUP=a", std::string("RATION_GROUP_LIMIT=") + value});
    REQUIRE(reading.problems.size() == 1);
    INFO(reading.lines());
    CHECK(reading.problems[0].line.find(std::string("RATION_GROUP_LIMIT=") + value + ": ") == 0);
    CHECK(reading.problems[0].fatal_for_cli);
    REQUIRE(reading.settings.groups.size() == 1);
    CHECK(stated(reading, 0) == held);
    CHECK(stated(reading, 0, kSecond) == kStrictest);
    CHECK(is_free(reading));
  }
}

TEST_CASE("a group limit that the environment has twice is a contradiction; both hold") {
  const Reading reading = read({"RATION_GROUP_LIMIT=14GiB", "RATION_GROUP_LIMIT=4GiB", "RATION_GROUP=a"});
  CHECK(reading.problems.size() == 1);
  CHECK(stated(reading, 0) == 4 * kGiB);
  const Reading devices = read({"RATION_GROUP_LIMIT=0=8GiB", "RATION_GROUP_LIMIT=1=4GiB,x", "RATION_GROUP=a"});
  CHECK(stated(devices, 0) == 8 * kGiB);
  CHECK(stated(devices, 0, kSecond) == 4 * kGiB);
  CHECK(stated(devices, 0, device(2)) == kStrictest);
  CHECK(read({"RATION_GROUP_LIMIT=4g", "RATION_GROUP_LIMIT=4g", "RATION_GROUP=a"}).problems.empty());
}

TEST_CASE("a group limit without a group limits this process alone, with one line") {
  for (const char *group : {"PATH=/bin", "RATION_GROUP="}) {
    INFO(group);
    const Reading reading = read({group, "RATION_GROUP_LIMIT=0=3GiB", "RATION_LIMIT=8GiB"});
    REQUIRE(reading.problems.size() == 1);
    CHECK(reading.lines().find("RATION_GROUP_LIMIT=0=3GiB: no group is given (RATION_GROUP); enforced for this "
                               "process alone\n") == 0);
    CHECK_FALSE(reading.problems[0].fatal_for_cli);
    CHECK(reading.settings.groups.empty());
    CHECK(reading.settings.limit_on(kFirst).bytes == 3 * kGiB);
    CHECK(reading.settings.limit_on(kSecond).bytes == 8 * kGiB);
  }
}

TEST_CASE("the limit of a group with a malformed name limits this process alone, with a second line") {
  const Reading reading = read({"RATION_GROUP=a b", "RATION_GROUP_LIMIT=3GiB", "RATION_GROUP_TREE=" + kOuter});
  REQUIRE(reading.problems.size() == 2);
  CHECK(reading.problems[0].line.find("RATION_GROUP=a b: ") == 0);
  CHECK(reading.problems[1].line.find("RATION_GROUP_LIMIT=3GiB: its group's name cannot be used") == 0);
  CHECK(reading.settings.limit_on(kFirst).bytes == 3 * kGiB);
  REQUIRE(reading.settings.groups.size() == 1);
  CHECK(stated(reading, 0) == std::nullopt);
}

TEST_CASE("a malformed name without a limit gets one line and is no group") {
  const Reading reading = read({"RATION_GROUP=a/b"});
  CHECK(reading.problems.size() == 1);
  CHECK(reading.settings.groups.empty());
  CHECK(is_free(reading));
}

TEST_CASE("a malformed name with a malformed limit is the strictest reading for the process") {
  const Reading reading = read({"RATION_GROUP=a b", "RATION_GROUP_LIMIT=0=3GiB,x"});
  CHECK(reading.problems.size() == 2);
  CHECK(reading.settings.limit_on(kFirst).bytes == 3 * kGiB);
  CHECK(reading.settings.limit_on(kSecond).bytes == kStrictest);
}

TEST_CASE("two names are no group, because the owner of the limit is ambiguous") {
  const Reading reading = read({"RATION_GROUP=a", "RATION_GROUP=b", "RATION_GROUP_LIMIT=3GiB"});
  CHECK(reading.problems.size() == 2);
  CHECK(reading.settings.groups.empty());
  CHECK(reading.settings.limit_on(kFirst).bytes == 3 * kGiB);
}

TEST_CASE("trees are in the order of their variable, the named group after them") {
  const Reading reading =
      read({"RATION_GROUP_TREE=" + kOuter + "=0=8GiB,1=4GiB;" + kInner, "RATION_GROUP=lab", "RATION_GROUP_LIMIT=1GiB"});
  CHECK(reading.problems.empty());
  const std::vector<Settings::Group> &groups = reading.settings.groups;
  REQUIRE(groups.size() == 3);
  CHECK((groups[0].kind == Kind::kTree && groups[1].kind == Kind::kTree && groups[2].kind == Kind::kNamed));
  CHECK(groups[0].name == kOuter);
  CHECK(groups[1].name == kInner);
  CHECK(groups[2].name == "lab");
  CHECK(stated(reading, 0) == 8 * kGiB);
  CHECK(stated(reading, 0, kSecond) == 4 * kGiB);
  CHECK(stated(reading, 1) == std::nullopt);
  CHECK(stated(reading, 2) == kGiB);
  CHECK(is_free(reading));
}

TEST_CASE("a group limit without a name belongs to the innermost tree") {
  const std::string trees = "RATION_GROUP_TREE=" + kOuter + "=8GiB;" + kInner + "=4GiB";
  const Reading smaller = read({trees, "RATION_GROUP_LIMIT=3GiB"});
  CHECK(smaller.problems.empty());
  REQUIRE(smaller.settings.groups.size() == 2);
  CHECK(stated(smaller, 0) == 8 * kGiB);
  CHECK(stated(smaller, 1) == 3 * kGiB);
  CHECK(stated(read({trees, "RATION_GROUP_LIMIT=5GiB"}), 1) == 4 * kGiB);
  const Reading malformed = read({trees, "RATION_GROUP_LIMIT=x"});
  CHECK(malformed.problems.size() == 1);
  CHECK_FALSE(malformed.settings.groups[0].in_doubt);
  CHECK(malformed.settings.groups[1].in_doubt);
  CHECK(is_free(malformed));
}

TEST_CASE("a malformed list of trees is the strictest reading for each of them, with one line") {
  struct Row {
    std::string value;
    std::size_t trees;
    std::uint64_t first;    // what the first states
    std::uint64_t process;  // what the process itself is held to; everything where nothing
  };
  const Row rows[] = {
      {kOuter + "=8Gib", 1, kStrictest, kSixteenGiB},
      {kOuter + "=", 1, kStrictest, kSixteenGiB},
      {kOuter + "=0=2GiB,x", 1, 2 * kGiB, kSixteenGiB},
      {kOuter + "=2GiB;", 1, 2 * kGiB, kSixteenGiB},
      {kOuter + "=2GiB;;" + kInner, 2, 2 * kGiB, kSixteenGiB},
      {kOuter + "=14GiB;" + kOuter + "=2GiB", 1, 2 * kGiB, kSixteenGiB},
      {kOuter + ";" + kOuter, 1, kStrictest, kSixteenGiB},
      {kOuter + "=14GiB,0123", 1, kStrictest, kSixteenGiB},
      {kOuter + ";0123456789ABCDEF=2GiB", 1, kStrictest, 2 * kGiB},
      {kOuter + ";0123456789abcde=2GiB", 1, kStrictest, 2 * kGiB},
      {kOuter + ";0123456789abcdef0=2GiB", 1, kStrictest, 2 * kGiB},
      {kOuter + "; " + kInner + "=2GiB", 1, kStrictest, 2 * kGiB},
      {"", 0, 0, kStrictest},
      {";", 0, 0, kStrictest},
      {"x", 0, 0, kStrictest},
      {"2GiB", 0, 0, 2 * kGiB},
      {"lab=14GiB", 0, 0, kStrictest},
  };
  for (const Row &row : rows) {
    INFO(row.value);
    const Reading reading = read({"RATION_GROUP_TREE=" + row.value});
    INFO(reading.lines());
    REQUIRE(reading.problems.size() == 1);
    CHECK(reading.problems[0].line.find("RATION_GROUP_TREE=" + row.value + ": ") == 0);
    CHECK(reading.problems[0].line.find('\n') == std::string::npos);
    CHECK(reading.problems[0].fatal_for_cli);
    REQUIRE(reading.settings.groups.size() == row.trees);
    for (const Settings::Group &tree : reading.settings.groups) {
      CHECK(tree.in_doubt);
    }
    if (row.trees > 0) {
      CHECK(stated(reading, 0) == row.first);
    }
    CHECK(reading.settings.limit_on(kFirst).bytes == row.process);
  }
}

TEST_CASE("of more than 256 trees the first 256 are held, in doubt") {
  std::string list = "RATION_GROUP_TREE=0000000000000000=1g";
  for (int i = 1; i < 300; ++i) {
    const std::string digits = std::to_string(i);
    list += ";" + std::string(16 - digits.size(), '0') + digits;
  }
  const Reading reading = read({list});
  REQUIRE(reading.settings.groups.size() == 256);
  CHECK(reading.settings.group_limit_on(reading.settings.groups[255], device(0)) == kStrictest);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line.find("it lists 300 trees, and 256 is the most") != std::string::npos);
}

TEST_CASE("a mistake in the trees does not affect the named group, and vice versa") {
  const Reading trees = read({"RATION_GROUP_TREE=" + kOuter + "=x", "RATION_GROUP=a", "RATION_GROUP_LIMIT=14GiB"});
  CHECK(stated(trees, 0) == kStrictest);
  CHECK(stated(trees, 1) == 14 * kGiB);
  const Reading named = read({"RATION_GROUP_TREE=" + kOuter + "=14GiB", "RATION_GROUP=a", "RATION_GROUP_LIMIT=x"});
  CHECK(stated(named, 0) == 14 * kGiB);
  CHECK(stated(named, 1) == kStrictest);
}

TEST_CASE("two lists of trees are a contradiction; the trees of both hold") {
  const Reading reading =
      read({"RATION_GROUP_TREE=" + kOuter + "=8GiB", "RATION_GROUP_TREE=" + kOuter + "=4GiB;" + kInner});
  CHECK(reading.problems.size() == 1);
  REQUIRE(reading.settings.groups.size() == 2);
  CHECK(stated(reading, 0) == 4 * kGiB);
  CHECK(stated(reading, 1) == kStrictest);
}

TEST_CASE("a group counts as a limit, with or without a group limit") {
  for (const std::string &entry :
       {std::string("RATION_GROUP=a"), "RATION_GROUP_TREE=" + kOuter, std::string("RATION_GROUP_TREE=")}) {
    INFO(entry);
    CHECK(read({entry}).settings.limit_asked());
  }
  CHECK_FALSE(read({"RATION_GROUP="}).settings.limit_asked());
}

TEST_CASE("a group limit that names no device, or several, gets a line when the devices are known") {
  Reading reading =
      read({"RATION_GROUP=a", "RATION_GROUP_LIMIT=GPU-1f2e=14GiB,7=1GiB", "RATION_GROUP_TREE=" + kOuter + "=9=1GiB"});
  CHECK(reading.problems.empty());
  reading.settings.resolve_devices({kFirst, kSecond}, reading.problems);
  REQUIRE(reading.problems.size() == 3);
  CHECK(reading.problems[0].line.find("RATION_GROUP_TREE=" + kOuter + "=9=1GiB: there is no device \"9\"") == 0);
  CHECK(reading.problems[1].line.find("RATION_GROUP_LIMIT=GPU-1f2e=14GiB,7=1GiB: \"GPU-1f2e\" fits 2 devices") == 0);
  CHECK(reading.problems[2].line.find("there is no device \"7\"") != std::string::npos);
  CHECK(stated(reading, 0) == std::nullopt);
  CHECK(stated(reading, 1) == kStrictest);
  CHECK(is_free(reading));
}

TEST_CASE("a tree's limit of all devices and a group limit of one are no contradiction") {
  Reading reading = read({"RATION_GROUP_TREE=" + kOuter + "=14GiB", "RATION_GROUP_LIMIT=0=13GiB"});
  reading.settings.resolve_devices({kFirst, kSecond}, reading.problems);
  CHECK(reading.problems.empty());
  CHECK(stated(reading, 0) == 13 * kGiB);
  CHECK(stated(reading, 0, kSecond) == 14 * kGiB);
}

TEST_CASE("a group limit of the process alone is resolved separately from its own limit") {
  Reading reading = read({"RATION_LIMIT=0=8GiB", "RATION_GROUP_LIMIT=GPU-1f2e3=4GiB,7=1GiB"});
  REQUIRE(reading.problems.size() == 1);
  reading.settings.resolve_devices({kFirst, kSecond}, reading.problems);
  REQUIRE(reading.problems.size() == 2);
  CHECK(reading.problems[1].line.find("RATION_GROUP_LIMIT=GPU-1f2e3=4GiB,7=1GiB: there is no device \"7\"") == 0);
  CHECK(reading.settings.limit_on(kFirst).bytes == 4 * kGiB);
  CHECK_FALSE(reading.settings.limit_on(kSecond).asked);
}

TEST_CASE("the ledgers are in the configured folder, else in one of the effective user") {
  const std::string own = "/dev/shm/ration-" + std::to_string(geteuid());
  CHECK(read({"RATION_STATE_DIR=/run/ration"}).settings.state_folder() == "/run/ration");
  CHECK(read({"RATION_STATE_DIR="}).settings.state_folder() == own);
  CHECK(read({}).settings.state_folder() == own);
  for (const char *entry : {"RATION_STATE_DIR=ration", "RATION_STATE_DIR=./x", "RATION_STATE_DIR=~/x"}) {
    INFO(entry);
    const Reading relative = read({entry});
    REQUIRE(relative.problems.size() == 1);
    CHECK(relative.problems[0].line.find("absolute path") != std::string::npos);
    CHECK(relative.problems[0].fatal_for_cli);
    CHECK(relative.settings.state_folder() == own);
  }
}
