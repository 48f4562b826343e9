// Limits of all processes of a container together: our own name, and the variables of HAMi and KAI.
#include "catch.h"
#include "unit/config/written_files.h"

using namespace ration::config;

namespace {

using Kind = Settings::Group::Kind;

constexpr std::uint64_t kGiB = 1ull << 30;
const DeviceIdentity kFirst = device(0, "GPU-1f2e3d4c-0000-0000-0000-000000000001");
const DeviceIdentity kSecond = device(1, "GPU-1f2e9999-0000-0000-0000-000000000002");
const std::string kTree = "0123456789abcdef";
const std::string kHami = "CUDA_DEVICE_MEMORY_LIMIT";

// The only group, which must be a container's.
const Settings::Group &container(const Reading &reading) {
  INFO(reading.lines());
  REQUIRE(reading.settings.groups.size() == 1);
  REQUIRE(reading.settings.groups[0].kind == Kind::kContainer);
  return reading.settings.groups[0];
}

std::optional<std::uint64_t> limit_on(const Reading &reading, const DeviceIdentity &on = kFirst) {
  return reading.settings.group_limit_on(container(reading), on);
}

std::string name_of(std::initializer_list<std::string> entries) {
  return container(read(entries)).name;
}

const std::string &reason_of(const Reading &reading) {
  REQUIRE(reading.settings.third_party.size() == 1);
  CHECK(reading.settings.third_party[0].disposition == Disposition::kOverridden);
  return reading.settings.third_party[0].reason;
}

}  // namespace

TEST_CASE("a container's limit is not the process's own, in our variable and in others'") {
  for (const char *entry : {"RATION_CONTAINER_LIMIT=4GiB", "GPU_MEMORY_LIMIT=4294967296", "CUDA_DEVICE_MEMORY_LIMIT=4g",
                            "CUDA_DEVICE_MEMORY_LIMIT_0=4g"}) {
    INFO(entry);
    const Reading reading = read({entry});
    CHECK(reading.problems.empty());
    CHECK(limit_on(reading) == 4 * kGiB);
    CHECK_FALSE(reading.settings.limit_on(kFirst).asked);
    CHECK(reading.settings.limit_asked());
    CHECK(reading.settings.origin_of("limit") == nullptr);
    CHECK(reading.settings.origin_of("container_limit")->written() == entry);
  }
}

TEST_CASE("MPS limits each client, and a framework's fraction each process") {
  for (const char *entry : {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4G", "XLA_PYTHON_CLIENT_MEM_FRACTION=0.25"}) {
    INFO(entry);
    const Reading reading = read({entry});
    CHECK(reading.settings.groups.empty());
    CHECK(reading.settings.limit_on(kFirst).bytes == 4 * kGiB);
  }
}

TEST_CASE("a container's limit has a size for each device") {
  const Reading ours = read({"RATION_CONTAINER_LIMIT=0=2GiB,GPU-1f2e9=50%"});
  const Reading theirs = read({kHami + "_0=2g", kHami + "_1=8g"});
  for (const Reading *reading : {&ours, &theirs}) {
    CHECK(limit_on(*reading, kFirst) == 2 * kGiB);
    CHECK(limit_on(*reading, kSecond) == 8 * kGiB);
    CHECK(limit_on(*reading, device(2, "GPU-77")) == std::nullopt);
  }
  CHECK(limit_on(read({kHami + "=2g", kHami + "_0=8g"})) == 2 * kGiB);
}

TEST_CASE("a malformed limit of a container is the strictest reading for all of it, with one line") {
  const std::pair<std::string, std::uint64_t> rows[] = {
      {"RATION_CONTAINER_LIMIT=", kStrictest},
      {"RATION_CONTAINER_LIMIT=8Gib", kStrictest},
      {"RATION_CONTAINER_LIMIT=0=2GiB,x", 2 * kGiB},
      {"GPU_MEMORY_LIMIT=8g", kStrictest},
      {kHami + "=8GiB", kStrictest},
      {kHami + "_0=x", kStrictest},
  };
  for (const auto &[entry, held] : rows) {
    INFO(entry);
    const Reading reading = read({entry});
    REQUIRE(reading.problems.size() == 1);
    CHECK(reading.problems[0].line.find(entry + ": ") == 0);
    CHECK(reading.problems[0].fatal_for_cli == (entry.find("RATION_") == 0));
    CHECK(limit_on(reading) == held);
    CHECK(limit_on(reading, kSecond) == kStrictest);
    CHECK_FALSE(reading.settings.limit_on(kFirst).asked);
  }
}

TEST_CASE("a limit of ours, of a process or of the container, overrides theirs of the container") {
  for (const std::string ours : {"RATION_LIMIT=8g", "RATION_CONTAINER_LIMIT=8g"}) {
    for (const std::string theirs : {"GPU_MEMORY_LIMIT=1073741824", "CUDA_DEVICE_MEMORY_LIMIT=1g"}) {
      INFO(ours << " " << theirs);
      const Reading reading = read({theirs, ours});
      CHECK(reason_of(reading) == ours + " takes precedence");
      CHECK(reading.settings.groups.size() == (ours.find("CONTAINER") != std::string::npos ? 1 : 0));
    }
  }
  const WrittenFiles files;
  for (const char *key : {"limit", "container_limit"}) {
    files.user(std::string("{\"") + key + "\": \"8GiB\"}");
    CHECK(reason_of(files.read({"GPU_MEMORY_LIMIT=1073741824"})) ==
          files.path("user/ration/config.json") + ":1:2: " + key + "=8GiB takes precedence");
  }
}

TEST_CASE("our own limit of the container leaves a limit of each process to others") {
  const Reading reading = read({"RATION_CONTAINER_LIMIT=8g", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4G"});
  CHECK(limit_on(reading) == 8 * kGiB);
  CHECK(reading.settings.limit_on(kFirst).bytes == 4 * kGiB);
}

TEST_CASE("theirs hold beside one of ours that cannot be read") {
  const Reading container_malformed = read({"RATION_CONTAINER_LIMIT=x", kHami + "=2g"});
  REQUIRE(container_malformed.settings.groups.size() == 2);
  CHECK(container_malformed.settings.groups[0].in_doubt);
  CHECK_FALSE(container_malformed.settings.groups[1].in_doubt);
  CHECK(container_malformed.settings.group_limit_on(container_malformed.settings.groups[1], kFirst) == 2 * kGiB);
  const Reading limit_malformed = read({"RATION_LIMIT=x", kHami + "=2g"});
  CHECK(limit_on(limit_malformed) == 2 * kGiB);
  CHECK(limit_malformed.settings.limit_on(kFirst).bytes == kStrictest);
}

TEST_CASE("those that state the same share a group, in whatever order and place") {
  CHECK(name_of({kHami + "=4g"}) == name_of({"PATH=/bin", kHami + "=4g"}));
  CHECK(name_of({kHami + "_0=4g", kHami + "_1=2g"}) == name_of({kHami + "_1=2g", kHami + "_0=4g"}));
  CHECK(name_of({kHami + "=4g"}).size() == 8);
  const WrittenFiles files;
  files.user(R"({"container_limit": "4g"})");
  CHECK(container(files.read()).name == name_of({"RATION_CONTAINER_LIMIT=4g"}));
}

TEST_CASE("another variable, value or device is another group") {
  const std::string names[] = {name_of({kHami + "=4g"}),
                               name_of({kHami + "=2g"}),
                               name_of({kHami + "_0=4g"}),
                               name_of({kHami + "_1=4g"}),
                               name_of({kHami + "_0=4g", kHami + "=4g"}),
                               name_of({"GPU_MEMORY_LIMIT=4294967296"}),
                               name_of({"RATION_CONTAINER_LIMIT=4g"}),
                               name_of({"RATION_CONTAINER_LIMIT=4294967296"})};
  for (std::size_t i = 0; i < std::size(names); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      INFO(i << " " << j);
      CHECK(names[i] != names[j]);
    }
  }
}

TEST_CASE("the variables of two owners are two groups, and the smaller limit is in one of them") {
  const Reading reading = read({"GPU_MEMORY_LIMIT=1073741824", kHami + "=2g"});
  REQUIRE(reading.settings.groups.size() == 2);
  CHECK(reading.settings.group_limit_on(reading.settings.groups[0], kFirst) == kGiB);
  CHECK(reading.settings.group_limit_on(reading.settings.groups[1], kFirst) == 2 * kGiB);
  CHECK(reading.settings.groups[1].name == name_of({kHami + "=2g"}));
}

TEST_CASE("the container is between the trees and the named group") {
  for (const std::string entry : {"RATION_CONTAINER_LIMIT=4g", "CUDA_DEVICE_MEMORY_LIMIT=4g"}) {
    INFO(entry);
    const std::vector<Settings::Group> groups =
        read({"RATION_GROUP=lab", entry, "RATION_GROUP_TREE=" + kTree}).settings.groups;
    REQUIRE(groups.size() == 3);
    CHECK((groups[0].kind == Kind::kTree && groups[1].kind == Kind::kContainer && groups[2].kind == Kind::kNamed));
  }
}

TEST_CASE("a group limit without a name is not the container's") {
  const Reading alone = read({"RATION_CONTAINER_LIMIT=4g", "RATION_GROUP_LIMIT=2g"});
  CHECK(limit_on(alone) == 4 * kGiB);
  CHECK(alone.settings.limit_on(kFirst).bytes == 2 * kGiB);
  const Reading tree = read({"RATION_CONTAINER_LIMIT=4g", "RATION_GROUP_LIMIT=2g", "RATION_GROUP_TREE=" + kTree});
  REQUIRE(tree.settings.groups.size() == 2);
  CHECK(tree.settings.group_limit_on(tree.settings.groups[0], kFirst) == 2 * kGiB);
  CHECK(tree.settings.group_limit_on(tree.settings.groups[1], kFirst) == 4 * kGiB);
}

TEST_CASE("a mistake in a tree or a group does not affect the container, and vice versa") {
  const Reading others = read(
      {"RATION_CONTAINER_LIMIT=14g", "RATION_GROUP_TREE=" + kTree + "=x", "RATION_GROUP=a", "RATION_GROUP_LIMIT=x"});
  REQUIRE(others.settings.groups.size() == 3);
  CHECK(others.settings.group_limit_on(others.settings.groups[1], kFirst) == 14 * kGiB);
  const Reading own = read({"RATION_CONTAINER_LIMIT=x", "RATION_GROUP_TREE=" + kTree + "=14g", "RATION_GROUP=a"});
  REQUIRE(own.settings.groups.size() == 3);
  CHECK(own.settings.group_limit_on(own.settings.groups[0], kFirst) == 14 * kGiB);
  CHECK(own.settings.group_limit_on(own.settings.groups[1], kFirst) == kStrictest);
  CHECK(own.settings.group_limit_on(own.settings.groups[2], kFirst) == std::nullopt);
}

TEST_CASE("two limits of the container in one environment are a contradiction; both hold") {
  const Reading reading = read({"RATION_CONTAINER_LIMIT=4g", "RATION_CONTAINER_LIMIT=2g"});
  CHECK(reading.problems.size() == 1);
  REQUIRE(reading.settings.groups.size() == 2);
  CHECK(reading.settings.group_limit_on(reading.settings.groups[0], kFirst) == 4 * kGiB);
  CHECK(reading.settings.group_limit_on(reading.settings.groups[1], kFirst) == 2 * kGiB);
}

TEST_CASE("a container's limit that names no device, or several, gets a line when the devices are known") {
  Reading reading = read({"RATION_CONTAINER_LIMIT=GPU-1f2e=14GiB"});
  reading.settings.resolve_devices({kFirst, kSecond}, reading.problems);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line.find("RATION_CONTAINER_LIMIT=GPU-1f2e=14GiB: \"GPU-1f2e\" fits 2 devices") == 0);
  CHECK(limit_on(reading) == kStrictest);
  Reading absent = read({kHami + "_7=1g"});
  absent.settings.resolve_devices({kFirst, kSecond}, absent.problems);
  CHECK(absent.lines().find(kHami + "_7=1g: there is no device \"7\", only 0 (GPU-1f2e") == 0);
}
