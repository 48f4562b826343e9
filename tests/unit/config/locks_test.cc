// Locked keys, what they need, and the locks that a program can escape.
#include "config/locks.h"

#include "catch.h"
#include "config/flag_marks.h"
#include "unit/config/written_files.h"

using namespace ration::config;

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

std::uint64_t limit_of(const Reading &reading, int ordinal) {
  return reading.settings.limit_on(device(ordinal, "GPU-1f2e")).bytes;
}

// Of a file beside `enforced`.
std::vector<std::string> escapes(std::string_view text) {
  const WrittenFiles files;
  files.write("system/enforced", "");
  return escapable_locks(read_settings_text(text, "/f.json", Source::kSystemFile, nullptr), files.path("system/f.json"),
                         files.path("system"));
}

std::vector<std::string> cuts(const Reading &reading) {
  std::vector<std::string> lines;
  for (const Problem &each : reading.settings.cut_by_locks({device(0, "GPU-1f2e"), device(1, "GPU-77")})) {
    lines.push_back(each.line);
    CHECK_FALSE(each.fatal_for_cli);
  }
  return lines;
}

}  // namespace

TEST_CASE("managed memory counts against a locked limit, whatever other sources say") {
  const WrittenFiles files;
  for (const char *text : {R"({"limit": "4GiB", "locked": ["limit"]})", R"({"reserve": "4GiB", "locked": ["reserve"]})",
                           R"({"group_limit": "4GiB", "locked": ["group_limit"]})",
                           R"({"container_limit": "4GiB", "locked": ["container_limit"]})",
                           R"({"limit": "4GiB", "managed": "x", "locked": ["limit"]})",
                           R"({"limit": "4GiB", "managed": "limit", "locked": ["limit"]})"}) {
    INFO(text);
    files.system(text);
    for (const char *lifting :
         {"RATION_MANAGED=count", "TF_FORCE_UNIFIED_MEMORY=1", "XLA_PYTHON_CLIENT_MEM_FRACTION=4"}) {
      INFO(lifting);
      CHECK(files.read({lifting}).settings.managed == Managed::kLimit);
    }
    CHECK(files.read({files.named(R"({"managed": "count"})")}).settings.managed == Managed::kLimit);
  }
  files.system(R"({"limit": "4GiB", "locked": ["limit"]})");
  const Reading reading = files.read({"RATION_MANAGED=count"});
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line == "RATION_MANAGED=count: a locked setting needs managed=limit, which holds; it is " +
                                        files.path("system/config.json") + ":1:2: limit=4GiB");
  CHECK_FALSE(reading.problems[0].fatal_for_cli);
  CHECK(files.read({"RATION_MANAGED=limit"}).problems.empty());
}

TEST_CASE("managed memory is only counted where no limit is locked, or a system file says so") {
  const WrittenFiles files;
  files.system(R"({"limit": "4GiB"})");
  CHECK(files.read({"RATION_MANAGED=count"}).settings.managed == Managed::kCount);
  files.system(R"({"limit": "4GiB", "managed": "count", "locked": ["limit"]})");
  CHECK(files.read().settings.managed == Managed::kCount);
  CHECK(files.read({"RATION_MANAGED=limit"}).settings.managed == Managed::kLimit);
  files.system(R"({"limit": "4GiB", "rules": [{"match": {"exe": "/a"}, "limit": "1GiB", "locked": ["limit"]}]})");
  CHECK(files.read({"RATION_MANAGED=count"}, {"/b", ""}).settings.managed == Managed::kCount);
  CHECK(files.read({"RATION_MANAGED=count"}, {"/a", ""}).settings.managed == Managed::kLimit);
}

TEST_CASE("a locked group limit locks the group of the system's files and the folder of its members") {
  const WrittenFiles files;
  files.system(R"({"group": "lab", "group_limit": "4GiB", "locked": ["group_limit"]})");
  const Reading reading = files.read({"RATION_GROUP=mine", "RATION_STATE_DIR=/mine"});
  REQUIRE(reading.settings.groups.size() == 1);
  CHECK(reading.settings.groups[0].name == "lab");
  CHECK(reading.settings.state_folder() == Settings().state_folder());
  CHECK(reading.problems.size() == 2);
  CHECK(reading.lines().find("RATION_GROUP=mine: a locked setting needs group=lab, which holds; it is ") !=
        std::string::npos);
  CHECK(reading.lines().find("RATION_STATE_DIR=/mine: a locked setting needs state_dir=" + Settings().state_folder()) !=
        std::string::npos);
  files.drop_in("a.json", R"({"state_dir": "/run/ration"})");
  CHECK(files.read({"RATION_STATE_DIR=/mine"}).settings.state_folder() == "/run/ration");
  files.system(R"({"group": "lab", "locked": ["group"]})");
  CHECK(files.read({"RATION_STATE_DIR=/mine"}).settings.state_folder() == "/run/ration");
}

TEST_CASE(
    "a locked limit of the container is a group beside the one that a process states, in a folder that is locked") {
  const WrittenFiles files;
  files.system(R"({"container_limit": "4GiB", "locked": ["container_limit"]})");
  const Reading own =
      files.read({"RATION_CONTAINER_LIMIT=8g", "RATION_STATE_DIR=/mine", "GPU_MEMORY_LIMIT=1073741824"});
  REQUIRE(own.settings.groups.size() == 2);
  const auto limit = [&](std::size_t i) {
    return own.settings.group_limit_on(own.settings.groups[i], device(0, "GPU-1f2e"));
  };
  CHECK(limit(0) == 8 * kGiB);
  CHECK(limit(1) == 4 * kGiB);
  CHECK(own.settings.groups[1].name == files.read().settings.groups.at(0).name);  // whatever a process states
  CHECK(own.settings.state_folder() == Settings().state_folder());
  CHECK(own.lines().find("RATION_STATE_DIR=/mine: a locked setting needs state_dir=") == 0);
  CHECK(files.read({"RATION_CONTAINER_LIMIT=4GiB"}).settings.groups.size() == 1);
  const Reading malformed = files.read({"RATION_CONTAINER_LIMIT=x"});
  REQUIRE(malformed.settings.groups.size() == 2);
  CHECK(malformed.settings.groups[0].in_doubt);
  CHECK_FALSE(malformed.settings.groups[1].in_doubt);  // a mistake of one process is not the others'
  files.system(R"({"container_limit": {"0": "2GiB"}, "locked": ["container_limit"]})");
  const Reading renumbered = files.read({"CUDA_VISIBLE_DEVICES=1,0"});
  CHECK(renumbered.settings.group_limit_on(renumbered.settings.groups.at(0), device(1)) == 2 * kGiB);
  CHECK(escapes(R"({"container_limit": {"0": "2GiB"}, "locked": ["container_limit"]})").size() == 1);
}

TEST_CASE("a group that no lock needs is free, and so is the folder of its members") {
  const WrittenFiles files;
  files.system(R"({"group": "lab", "group_limit": "4GiB", "state_dir": "/run/ration"})");
  const Reading free = files.read({"RATION_GROUP=mine", "RATION_STATE_DIR=/mine"});
  CHECK(free.settings.groups.at(0).name == "mine");
  CHECK(free.settings.state_folder() == "/mine");
  CHECK(files.read().settings.state_folder() == "/run/ration");
  files.system(R"({"group_limit": "4GiB", "locked": ["group_limit"]})");
  const Reading named = files.read({"RATION_GROUP=mine", "RATION_STATE_DIR=/mine"});
  CHECK(named.settings.groups.at(0).name == "mine");
  CHECK(named.settings.state_folder() == "/mine");
}

TEST_CASE("only the system's files may state the folder of the ledgers") {
  const WrittenFiles files;
  files.user(R"({"state_dir": "/mine"})");
  const Reading reading = files.read();
  CHECK(reading.settings.state_folder() == Settings().state_folder());
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line.find("it is not a key of the user's files; set the variable RATION_STATE_DIR") !=
        std::string::npos);
}

TEST_CASE("where a variable renumbers the devices, ordinals of a locked limit hold on all") {
  const WrittenFiles files;
  files.system(R"({"limit": {"0": "2GiB", "1": "8GiB"}, "locked": ["limit"]})");
  CHECK(limit_of(files.read(), 1) == 8 * kGiB);
  CHECK(limit_of(files.read(), 2) == kSixteenGiB);
  for (const char *renumbering : {"CUDA_VISIBLE_DEVICES=1,0", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}) {
    Reading reading = files.read({renumbering, "RATION_LIMIT=12g"});
    CHECK(limit_of(reading, 0) == 2 * kGiB);
    CHECK(limit_of(reading, 1) == 2 * kGiB);
    CHECK(limit_of(reading, 2) == 2 * kGiB);
    reading.settings.resolve_devices({device(0, "GPU-1f2e"), device(1, "GPU-77")}, reading.problems);
    CHECK(limit_of(reading, 1) == 2 * kGiB);
    REQUIRE(reading.problems.size() == 1);
    CHECK(reading.problems[0].line.find(
              "limit=0=2GiB,1=8GiB: the locked limit names ordinals, which CUDA_VISIBLE_DEVICES") != std::string::npos);
  }
  files.system(R"({"group": "lab", "group_limit": {"0": "2GiB"}, "locked": ["group_limit"]})");
  const Reading group = files.read({"CUDA_VISIBLE_DEVICES=1,0"});
  CHECK(group.settings.group_limit_on(group.settings.groups.at(0), device(1)) == 2 * kGiB);
}

TEST_CASE("a limit by UUID, and one that is not locked, hold as they are written under CUDA_VISIBLE_DEVICES") {
  const WrittenFiles files;
  files.system(R"({"limit": {"GPU-1f2e": "2GiB"}, "locked": ["limit"]})");
  const Reading locked = files.read({"CUDA_VISIBLE_DEVICES=1,0"});
  CHECK(locked.problems.empty());
  CHECK(limit_of(locked, 1) == 2 * kGiB);
  CHECK(locked.settings.limit_on(device(0, "GPU-77")).bytes == kSixteenGiB);
  files.system(R"({"limit": {"0": "2GiB"}})");
  CHECK(limit_of(files.read({"CUDA_VISIBLE_DEVICES=1,0"}), 1) == kSixteenGiB);
}

TEST_CASE("locks that a program can escape are named, and others are not") {
  const std::pair<const char *, const char *> rows[] = {
      {R"({"rules": [{"match": {"exe": "*/hog"}, "limit": "1GiB", "locked": ["limit"]}]})",
       "limit=1GiB: this lock holds only programs that the rule matches; a copy with another name"},
      {R"({"limit": {"0": "1GiB"}, "locked": ["limit"]})", "limit=0=1GiB: ordinals change with CUDA_VISIBLE_DEVICES"},
      {R"({"group": "a", "group_limit": {"0": "1GiB"}, "locked": ["group_limit"]})", "ordinals change"},
      {R"({"group_limit": "1GiB", "locked": ["group_limit"]})", "this file sets no group"},
      {R"({"limit": "1GiB", "managed": "count", "locked": ["limit"]})", "managed = count excludes managed memory"},
  };
  for (const auto &[text, expected] : rows) {
    INFO(text);
    const std::vector<std::string> lines = escapes(text);
    REQUIRE(lines.size() == 1);
    INFO(lines[0]);
    CHECK(lines[0].find("/f.json:1:") == 0);
    CHECK(lines[0].find(expected) != std::string::npos);
  }
  for (const char *text :
       {R"({"limit": {"0": "1GiB"}, "managed": "count"})", R"({"limit": "1GiB", "locked": ["limit"]})",
        R"({"group": "a", "group_limit": {"GPU-1": "1GiB"}, "reserve": "1GiB", "locked": ["group_limit", "reserve"]})",
        R"({"rules": [{"match": {"exe": "*/hog"}, "limit": "1GiB"}]})",
        R"({"limit": "2GiB", "locked": ["limit"],
            "rules": [{"match": {"exe": "*/hog"}, "limit": "1GiB", "locked": ["limit"]}]})"}) {
    INFO(text);
    CHECK(escapes(text).empty());
  }
}

TEST_CASE("where RATION_DISABLE=1 lifts the locks of a file, one line says how to forbid that") {
  const WrittenFiles files;
  const std::string_view text = R"({"limit": "1GiB", "reserve": "1GiB", "locked": ["limit", "reserve"]})";
  for (const char *place : {"system/config.json", "system/conf.d/10-a.json", "elsewhere/draft.json"}) {
    INFO(place);
    const FileReading reading = read_settings_text(text, "/f.json", Source::kSystemFile, nullptr);
    const std::vector<std::string> lines = escapable_locks(reading, files.path(place), files.path("system"));
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find("RATION_DISABLE=1 lifts the locks of this file") != std::string::npos);
    CHECK(lines[0].find("create " + files.path("system/enforced")) != std::string::npos);
    files.write("system/enforced", "");
    CHECK(escapable_locks(reading, files.path(place), files.path("system")).empty());
    std::filesystem::remove(files.path("system/enforced"));
  }
}

TEST_CASE("a limit that a locked one cuts down is named with both, as each was written, once") {
  const WrittenFiles files;
  const std::string at = files.path("system/config.json");
  files.system(R"({"limit": "4GiB", "locked": ["limit"]})");
  CHECK(cuts(files.read({"RATION_LIMIT=50%"})) ==
        std::vector<std::string>{"RATION_LIMIT=50%: asks for 8.00GiB of device 0, and gets 4.00GiB: " + at +
                                 ":1:2: limit=4GiB is locked"});
  CHECK(cuts(files.read({"RATION_LIMIT=50%", "RATION_FLAGS=" + mark_flag("", "limit", "50%")}))
            .at(0)
            .find("--limit 50%: asks") == 0);
  for (const char *smaller : {"RATION_LIMIT=25%", "RATION_LIMIT=1GiB", "RATION_MODE=async"}) {
    INFO(smaller);
    CHECK(cuts(files.read({smaller})).empty());
  }
  files.system(R"({"limit": "4GiB"})");
  CHECK(cuts(files.read({"RATION_LIMIT=50%"})).empty());
  files.system(R"({"reserve": "12GiB", "locked": ["reserve"]})");
  CHECK(cuts(files.read({"RATION_LIMIT=50%"})).at(0).find("gets 4.00GiB: " + at + ":1:2: reserve=12GiB") !=
        std::string::npos);
  CHECK(cuts(files.read({"RATION_RESERVE=1GiB"})).at(0).find("asks for 15.0GiB") != std::string::npos);
  files.system(R"({"group": "lab", "group_limit": {"1": "1GiB"}, "locked": ["group_limit"]})");
  CHECK(cuts(files.read({"RATION_GROUP_LIMIT=50%"})) ==
        std::vector<std::string>{"RATION_GROUP_LIMIT=50%: asks for 8.00GiB of device 1, and gets 1.00GiB: " + at +
                                 ":1:18: group_limit=1=1GiB is locked"});
}
