// Precedence of sources, and the lines about it.
#include "catch.h"
#include "config/flag_marks.h"
#include "unit/config/written_files.h"

using namespace ration::config;

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

std::string source_of(const Reading &reading, const char *key) {
  const Origin *origin = reading.settings.origin_of(key);
  return origin == nullptr ? "default" : std::string(name_of(origin->source));
}

std::uint64_t limit_of(const Reading &reading, int ordinal = 0) {
  return reading.settings.limit_on(device(ordinal, "GPU-1f2e", kSixteenGiB)).bytes;
}

}  // namespace

TEST_CASE("each source outranks the next, and every value records its source") {
  const WrittenFiles files;
  CHECK(source_of(files.read(), "mode") == "default");
  CHECK(source_of(files.read({"TF_GPU_ALLOCATOR=cuda_malloc_async"}), "mode") == "foreign");
  files.system(R"({"mode": "direct"})");
  CHECK(source_of(files.read({"TF_GPU_ALLOCATOR=cuda_malloc_async"}), "mode") == "system file");
  files.drop_in("a.json", R"({"mode": "async"})");
  CHECK(source_of(files.read(), "mode") == "conf.d file");
  CHECK(files.read().settings.mode == Mode::kAsync);
  files.user(R"({"mode": "direct"})");
  CHECK(source_of(files.read(), "mode") == "user file");
  CHECK(files.read().settings.mode == Mode::kDirect);
  const std::string named = files.named(R"({"mode": "async"})");
  CHECK(source_of(files.read({named}), "mode") == "named file");
  CHECK(files.read({named}).settings.mode == Mode::kAsync);
  CHECK(source_of(files.read({named, "RATION_MODE=pool"}), "mode") == "environment");
  CHECK(files.read({named, "RATION_MODE=pool"}).settings.mode == Mode::kPool);
  const std::string marks = "RATION_FLAGS=" + mark_flag("", "mode", "pool");
  CHECK(source_of(files.read({named, "RATION_MODE=pool", marks}), "mode") == "flag");
  CHECK(source_of(files.read({named, "RATION_MODE=direct", marks}), "mode") == "environment");
  CHECK(files.read().problems.empty());
}

TEST_CASE("a limit of a stronger source outranks a smaller one of a weaker source") {
  const WrittenFiles files;
  files.system(R"({"limit": "2GiB"})");
  CHECK(limit_of(files.read()) == 2 * kGiB);
  CHECK(limit_of(files.read({"RATION_LIMIT=8g"})) == 8 * kGiB);
  CHECK(limit_of(files.read({"GPU_MEMORY_LIMIT=1073741824"})) == 2 * kGiB);
}

TEST_CASE("a drop-in outranks config.json, a later one an earlier; hidden and other files are skipped") {
  const WrittenFiles files;
  files.system(R"({"limit": "1GiB", "mode": "direct"})");
  files.drop_in("10-a.json", R"({"limit": "2GiB"})");
  files.drop_in("20-b.json", R"({"limit": "3GiB"})");
  files.drop_in(".30-c.json", R"({"limit": "4GiB"})");
  files.drop_in("40-d.json~", R"({"limit": "5GiB"})");
  files.drop_in(".json", R"({"limit": "6GiB"})");
  const Reading reading = files.read();
  CHECK(limit_of(reading) == 3 * kGiB);
  CHECK(reading.settings.mode == Mode::kDirect);
  CHECK(reading.settings.origin_of("limit")->written() == files.path("system/conf.d/20-b.json") + ":1:2: limit=3GiB");
  CHECK(reading.settings.files == std::vector<std::string>{files.path("system/conf.d/20-b.json"),
                                                           files.path("system/conf.d/10-a.json"),
                                                           files.path("system/config.json")});
}

TEST_CASE("a locked key of a system file is a ceiling over every source") {
  const WrittenFiles files;
  files.system(R"({"limit": "4GiB", "locked": ["limit"]})");
  CHECK(limit_of(files.read()) == 4 * kGiB);
  CHECK(limit_of(files.read({"RATION_LIMIT=8g"})) == 4 * kGiB);
  CHECK(limit_of(files.read({"RATION_LIMIT=3g"})) == 3 * kGiB);
  CHECK(limit_of(files.read({files.named(R"({"limit": "8GiB"})")})) == 4 * kGiB);
  files.drop_in("a.json", R"({"limit": "8GiB"})");
  CHECK(limit_of(files.read()) == 4 * kGiB);
  files.drop_in("a.json", R"({"limit": "2GiB", "locked": ["limit"]})");
  CHECK(limit_of(files.read({"RATION_LIMIT=8g"})) == 2 * kGiB);
  CHECK(files.read({"RATION_LIMIT=8g"}).problems.empty());
}

TEST_CASE("a locked limit of one device does not affect others and is no contradiction") {
  const WrittenFiles files;
  files.system(R"({"limit": {"GPU-1f2e": "4GiB"}, "locked": ["limit"]})");
  Reading reading = files.read({"RATION_LIMIT=0=8g,1=8g"});
  reading.settings.resolve_devices({device(0, "GPU-1f2e"), device(1, "GPU-77")}, reading.problems);
  CHECK(reading.problems.empty());
  CHECK(reading.settings.limit_on(device(0, "GPU-1f2e")).bytes == 4 * kGiB);
  CHECK(reading.settings.limit_on(device(1, "GPU-77")).bytes == 8 * kGiB);
}

TEST_CASE("locked reserves and group limits hold beside requested ones; other locked values replace them") {
  const WrittenFiles files;
  files.system(R"({"reserve": "4GiB", "group_limit": "6GiB", "mode": "direct", "charge_context": true,
                   "locked": ["reserve", "group_limit", "mode", "charge_context"]})");
  CHECK(limit_of(files.read()) == 6 * kGiB);  // without a group: the process's own
  const Reading reading = files.read({"RATION_RESERVE=1g", "RATION_GROUP=lab", "RATION_GROUP_LIMIT=8g",
                                      "RATION_MODE=pool", "RATION_CHARGE_CONTEXT=true"});
  CHECK(limit_of(reading) == 12 * kGiB);
  CHECK(reading.settings.group_limit_on(reading.settings.groups.at(0), device(0)) == 6 * kGiB);
  CHECK(reading.settings.mode == Mode::kDirect);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line.find("RATION_MODE=pool: a system file locks this setting; ") == 0);
  CHECK_FALSE(reading.problems[0].fatal_for_cli);
}

TEST_CASE("only system files can lock keys") {
  const WrittenFiles files;
  files.user(R"({"mode": "direct", "locked": ["mode"]})");
  const Reading reading = files.read({"RATION_MODE=pool"});
  CHECK(reading.settings.mode == Mode::kPool);
  CHECK(reading.problems.size() == 1);
}

TEST_CASE("a malformed value leaves its setting to the next source; of limits all others hold") {
  const WrittenFiles files;
  files.system(R"({"mode": "direct", "limit": "2GiB"})");
  const Reading reading = files.read({"RATION_MODE=fast", "RATION_LIMIT=8Gib", "GPU_MEMORY_LIMIT=1073741824"});
  CHECK(reading.settings.mode == Mode::kDirect);
  CHECK(limit_of(reading) == 2 * kGiB);
  CHECK(reading.settings.group_limit_on(reading.settings.groups.at(0), device(0)) == kGiB);
  REQUIRE(reading.problems.size() == 2);
  CHECK(reading.lines().find("until then " + files.path("system/config.json") + ":1:2: mode=direct holds\n") !=
        std::string::npos);
  CHECK(limit_of(files.read({"RATION_LIMIT=x", "RATION_RESERVE=15g"})) == kGiB);
  CHECK(limit_of(files.read({"RATION_LIMIT=x"})) == 2 * kGiB);
  files.drop_in("a.json", R"({"limit": "y", "reserve": "z"})");
  CHECK(limit_of(files.read({"RATION_LIMIT=x"})) == 2 * kGiB);
  CHECK(limit_of(files.read({"RATION_LIMIT=15g"})) == kStrictest);  // the reserve
}

TEST_CASE("a mistake in a weaker source has no effect") {
  const WrittenFiles files;
  files.system(R"({"limit": "8Gib"})");
  CHECK(limit_of(files.read({"RATION_LIMIT=15g"})) == 15 * kGiB);
  CHECK(files.read({"RATION_LIMIT=15g"}).problems.empty());
  CHECK(limit_of(files.read()) == kStrictest);
  files.system(R"({"limit": "8Gib", "locked": ["limit"]})");
  CHECK(limit_of(files.read({"RATION_LIMIT=15g"})) == kStrictest);
}

TEST_CASE("the user's file is in XDG_CONFIG_HOME, or else below HOME") {
  const WrittenFiles files;
  std::filesystem::create_directories(files.path("home/.config/ration"));
  files.write("home/.config/ration/config.json", R"({"limit": "1GiB"})");
  const std::string home = "HOME=" + files.path("home");
  const auto limit = [&](const char *xdg) { return read({home, xdg}).settings.limit_on(device(0)).bytes; };
  CHECK(limit("XDG_CONFIG_HOME=") == kGiB);
  CHECK(limit("XDG_CONFIG_HOME=relative") == kGiB);
  CHECK(limit("XDG_CONFIG_HOME=/nowhere") == kSixteenGiB);
  CHECK_FALSE(read({"HOME="}).settings.limit_asked());
  CHECK_FALSE(read({"HOME=relative"}).settings.limit_asked());
}

TEST_CASE("a program with more rights than its user takes limits from the user, but no files") {
  const WrittenFiles files;
  files.user(R"({"log": "/tmp/x"})");
  files.system(R"({"limit": "3GiB", "log": "/var/log/x"})");
  const auto read = [&](std::vector<std::string> entries) { return files.read(std::move(entries), {}, true); };
  CHECK(read({}).settings.log == "/var/log/x");
  CHECK(read({}).problems.empty());
  CHECK(limit_of(read({"RATION_LIMIT=1g"})) == kGiB);
  for (const std::string &entry : {std::string("RATION_LOG=/etc/passwd"), std::string("RATION_STATE_DIR=/tmp/s"),
                                   std::string("RATION_SUMMARY=/tmp"), files.named(R"({"log": "/etc/passwd"})")}) {
    INFO(entry);
    const Reading reading = read({entry});
    CHECK(reading.settings.log == "/var/log/x");
    CHECK(reading.settings.state_directory.empty());
    CHECK(reading.settings.summary_directory.empty());
    REQUIRE(reading.problems.size() == 1);
    CHECK(reading.problems[0].line.find(entry + ": a program with more rights") == 0);
  }
}

TEST_CASE("a disabled library reads no file") {
  const WrittenFiles files;
  files.system("{");
  CHECK(files.read({"RATION_DISABLE=1"}).problems.empty());
  CHECK(files.read({"RATION_DISABLE=1"}).settings.files.empty());
}

TEST_CASE("a mark distinguishes an option's value from one that was set later") {
  const std::string marks = mark_flag(mark_flag(mark_flag("", "limit", "1g"), "mode", "pool"), "limit", "2g");
  CHECK(is_marked(marks, "limit", "2g"));
  CHECK(is_marked(marks, "mode", "pool"));
  CHECK_FALSE(is_marked(marks, "limit", "3g"));
  CHECK_FALSE(is_marked(marks, "mode", "2g"));
  CHECK_FALSE(is_marked("", "limit", "1g"));
  CHECK_FALSE(is_marked("limit", "limit", "1g"));
}

TEST_CASE("a file that cannot be used is shown with what holds instead of a limit of it") {
  const WrittenFiles files;
  const std::string absent = files.path("absent.json");
  const Reading missing = files.read({"RATION_CONFIG=" + absent});
  REQUIRE(missing.settings.origin_of("limit") != nullptr);
  CHECK(missing.settings.origin_of("limit")->in_force() == "at most 75% of each device (" + absent + " is refused)");
  CHECK(missing.settings.origin_of("config")->in_force() == "none (RATION_CONFIG=" + absent + " is refused)");
  files.user("{broken");
  const Reading broken = files.read({"RATION_LIMIT=8GiB", "GPU_MEMORY_LIMIT=1073741824"});
  REQUIRE(broken.settings.origins.size() == 2);
  CHECK(broken.settings.origins[0].in_force() == "RATION_LIMIT=8GiB");
  CHECK(broken.settings.origins[1].instead == kLimitInstead);
  CHECK(source_of(broken, "container_limit") == "default");
  CHECK(limit_of(broken) == 8 * kGiB);
  CHECK(files.read({"GPU_MEMORY_LIMIT=1073741824"}).settings.origin_of("container_limit") != nullptr);
}
