#include "config/settings.h"

#include <algorithm>

#include "catch.h"
#include "config/options.h"
#include "unit/config/environment.h"

using namespace ration::config;

namespace {

struct Row {
  const char *entry;
  bool accepted;
};

const Row kRows[] = {
    {"RATION_MODE=pool", true},
    {"RATION_MODE=async", true},
    {"RATION_MODE=direct", true},
    {"RATION_MODE=Direct", false},
    {"RATION_MODE=pool async", false},
    {"RATION_MODE=platform", false},
    {"RATION_PREALLOCATE=true", true},
    {"RATION_PREALLOCATE=false", true},
    {"RATION_PREALLOCATE=2GiB", true},
    {"RATION_PREALLOCATE=0.5", true},
    {"RATION_PREALLOCATE=1", false},
    {"RATION_PREALLOCATE=no", false},
    {"RATION_PREALLOCATE_AFTER=0", true},
    {"RATION_PREALLOCATE_AFTER=64MiB", true},
    {"RATION_PREALLOCATE_AFTER=-1", false},
    {"RATION_HEADROOM=0", true},
    {"RATION_HEADROOM=2%", true},
    {"RATION_HEADROOM=2", false},
    {"RATION_ASYNC_PREALLOCATE=-1", true},
    {"RATION_ASYNC_PREALLOCATE=0", true},
    {"RATION_ASYNC_PREALLOCATE=1073741824", true},
    {"RATION_ASYNC_PREALLOCATE=-2", false},
    {"RATION_BACKING=slab", true},
    {"RATION_BACKING=vmm", true},
    {"RATION_BACKING=auto", true},
    {"RATION_GRANULE=64MiB", true},
    {"RATION_GRANULE=0", false},
    {"RATION_RELEASE_THRESHOLD=0", true},
    {"RATION_RELEASE_THRESHOLD=2g", true},
    {"RATION_RELEASE_THRESHOLD=5", false},
    {"RATION_BACKING=mmap", false},
    {"RATION_FREE=deferred", true},
    {"RATION_FREE=synchronous", true},
    {"RATION_FREE=sync", false},
    {"RATION_MANAGED=limit", true},
    {"RATION_MANAGED=count", true},
    {"RATION_MANAGED=off", false},
    {"RATION_RESERVE=0", true},
    {"RATION_RESERVE=2GiB", true},
    {"RATION_RESERVE=2", false},
    {"RATION_SHOW_LIMIT=true", true},
    {"RATION_SHOW_LIMIT=false", true},
    {"RATION_SHOW_LIMIT=0", false},
    {"RATION_CHARGE_CONTEXT=true", true},
    {"RATION_CHARGE_CONTEXT=maybe", false},
    {"RATION_CONTAINER_LIMIT=8GiB", true},
    {"RATION_CONTAINER_LIMIT=0=8GiB,GPU-1f2e=50%", true},
    {"RATION_CONTAINER_LIMIT=8Gib", false},
    {"RATION_CONTAINER_LIMIT=", false},
    {"RATION_GROUP=lab-3_a.b", true},
    {"RATION_GROUP=a/b", false},
    {"RATION_GROUP=a b", false},
    {"RATION_GROUP_TREE=0123456789abcdef=0=8GiB,1=50%;fedcba9876543210", true},
    {"RATION_GROUP_TREE=0123456789abcdef=8Gib", false},
    {"RATION_GUARANTEE=1", false},
    {"RATION_IPC=auto", true},
    {"RATION_IPC=direct", true},
    {"RATION_IPC=none", false},
    {"RATION_LOG=/tmp/%n.%p.%h.100%%.jsonl", true},
    {"RATION_LOG=/tmp/%d.jsonl", false},
    {"RATION_LOG=/tmp/100%", false},
    {"RATION_LOG=a\nb", false},
    {"RATION_STACKS=none", true},
    {"RATION_STACKS=native", true},
    {"RATION_STACKS=python", true},
    {"RATION_STACKS=all", false},
    {"RATION_FAIL=nth=3", true},
    {"RATION_FAIL=cuMemAlloc@3", false},
    {"RATION_WAIT=0", true},
    {"RATION_WAIT=500ms", true},
    {"RATION_WAIT=30s", true},
    {"RATION_WAIT=30", true},
    {"RATION_WAIT=-1s", false},
    {"RATION_WAIT=1.5s", true},
    {"RATION_WAIT=.5s", false},
    {"RATION_WAIT=1.s", false},
    {"RATION_WAIT=1 s", false},
    {"RATION_WAIT=s", false},
    {"RATION_WAIT=9223372036854775807h", false},
    {"RATION_DIAGNOSTICS=off", true},
    {"RATION_DIAGNOSTICS=warn", true},
    {"RATION_DIAGNOSTICS=info", true},
    {"RATION_DIAGNOSTICS=debug", true},
    {"RATION_DIAGNOSTICS=trace:/tmp/a:b", true},
    {"RATION_DIAGNOSTICS=Debug", false},
    {"RATION_DIAGNOSTICS=verbose", false},
    {"RATION_DIAGNOSTICS=LEVEL:FILE", false},
    {"RATION_DIAGNOSTICS=debug:", false},
    {"RATION_DIAGNOSTICS=:a", false},
    {"RATION_DIAGNOSTICS=debug:a\nb", false},
    {"RATION_STATE_DIR=/run/ration", true},
    {"RATION_STATE_DIR=run/ration", false},
    {"RATION_STATE_DIR=/a\nb", false},
    {"RATION_LOG_SIZE=1GiB", true},
    {"RATION_LOG_SIZE=10%", false},
    {"RATION_LOG_SIZE=1", false},
    {"RATION_DISABLE=0", true},
    {"RATION_DISABLE=true", false},
    {"RATION_DISABLE=2", false},
    {"RATION_SUMMARY=/tmp/x", true},
    {"RATION_FLAGS=limit:1", true},
};

}  // namespace

TEST_CASE("a valid value is accepted silently, a malformed one gets one line with variable and value") {
  for (const Row &row : kRows) {
    INFO(row.entry);
    const Reading reading = read({row.entry});
    INFO(reading.lines());
    REQUIRE(reading.problems.size() == (row.accepted ? 0 : 1));
    if (!row.accepted) {
      const std::string &line = reading.problems[0].line;
      const std::string entry(row.entry);
      CHECK(line.substr(0, entry.find('=') + 1) == entry.substr(0, entry.find('=') + 1));
      CHECK((line.find(entry) == 0 || entry.find('\n') != std::string::npos));
      CHECK(line.find('\n') == std::string::npos);
      CHECK(reading.problems[0].fatal_for_cli);
    }
  }
}

TEST_CASE("every option of the table has an accepted row above, a key, a default and a help text") {
  for (const Option &option : options()) {
    INFO(option.variable);
    const auto names_it = [&](const Row &row) {
      const std::string_view entry(row.entry);
      return row.accepted && entry.substr(0, entry.find('=')) == option.variable;
    };
    const bool elsewhere =
        option.key == "limit" || option.key == "group_limit" || option.key == "guarantee" || option.key == "config";
    CHECK((elsewhere || std::any_of(std::begin(kRows), std::end(kRows), names_it)));
    CHECK(option.variable.substr(0, 7) == "RATION_");
    CHECK_FALSE(option.help.empty());
    CHECK_FALSE(option.fallback.empty());
    CHECK(option_of_key(option.key) == &option);
    CHECK(option_of_variable(option.variable) == &option);
  }
}

TEST_CASE("the defaults are those of the table") {
  const Settings settings = read({}).settings;
  CHECK(settings.mode == Mode::kPool);
  CHECK(std::get<Preallocate>(settings.preallocate) == Preallocate::kAuto);
  CHECK(settings.preallocate_after == Size::of_bytes(32ull << 20));
  CHECK_FALSE(settings.headroom.has_value());
  CHECK_FALSE(std::get<bool>(settings.async_preallocate));
  CHECK(settings.backing == Backing::kAuto);
  CHECK_FALSE(settings.granule.has_value());
  CHECK_FALSE(settings.release_threshold.has_value());
  CHECK(settings.free == Free::kDeferred);
  CHECK(settings.managed == Managed::kLimit);
  CHECK(settings.show_limit);
  CHECK_FALSE(settings.charge_context);
  CHECK_FALSE(settings.disabled);
  CHECK(settings.log.empty());
  CHECK(settings.summary_directory.empty());
}

TEST_CASE("every setting reaches its member") {
  const Settings settings =
      read({"RATION_MODE=direct",       "RATION_PREALLOCATE=2GiB",     "RATION_PREALLOCATE_AFTER=0",
            "RATION_HEADROOM=1g",       "RATION_ASYNC_PREALLOCATE=-1", "RATION_BACKING=vmm",
            "RATION_GRANULE=64MiB",     "RATION_RELEASE_THRESHOLD=0",  "RATION_FREE=synchronous",
            "RATION_MANAGED=count",     "RATION_SHOW_LIMIT=false",     "RATION_CHARGE_CONTEXT=true",
            "RATION_GROUP=lab",         "RATION_GUARANTEE=3g",         "RATION_IPC=direct",
            "RATION_LOG=a.jsonl",       "RATION_STACKS=python",        "RATION_FAIL=nth=3",
            "RATION_WAIT=2m",           "RATION_STATE_DIR=/s",         "RATION_SUMMARY=/t",
            "RATION_DIAGNOSTICS=info:a"})
          .settings;
  CHECK(settings.mode == Mode::kDirect);
  CHECK(std::get<Size>(settings.preallocate) == Size::of_bytes(2ull << 30));
  CHECK(settings.preallocate_after == Size::of_bytes(0));
  CHECK(settings.headroom == Size::of_bytes(1ull << 30));
  CHECK(std::get<bool>(settings.async_preallocate));
  CHECK(settings.backing == Backing::kVmm);
  CHECK(settings.granule == Size::of_bytes(64ull << 20));
  CHECK(settings.release_threshold == Size::of_bytes(0));
  CHECK(settings.free == Free::kSynchronous);
  CHECK(settings.managed == Managed::kCount);
  CHECK_FALSE(settings.show_limit);
  CHECK(settings.charge_context);
  CHECK(settings.groups.at(0).name == "lab");
  CHECK(settings.guarantee_on({0, "", 8ull << 30}) == 3ull << 30);
  CHECK(settings.guarantee_on({1, "", 8ull << 30}) == 3ull << 30);
  CHECK(settings.ipc == Ipc::kDirect);
  CHECK(settings.log == "a.jsonl");
  CHECK(settings.stacks == Stacks::kPython);
  CHECK(settings.fail.at(0).nth == 3);
  CHECK(settings.wait == std::chrono::minutes(2));
  CHECK(settings.state_directory == "/s");
  CHECK(settings.summary_directory == "/t");
  CHECK(settings.diagnostics == DiagnosticLevel::kInfo);
  CHECK(settings.diagnostics_file == "a");
  CHECK(settings.origins.size() == 22);
  CHECK(settings.origins[0].key == "mode");
  CHECK(settings.origins[0].value == "direct");
}

TEST_CASE("a malformed value leaves the default; a malformed charge_context is true") {
  CHECK(read({"RATION_MODE=x"}).settings.mode == Mode::kPool);
  CHECK(read({"RATION_SHOW_LIMIT=x"}).settings.show_limit);
  CHECK(read({"RATION_CHARGE_CONTEXT=yes"}).settings.charge_context);
  CHECK_FALSE(read({"RATION_CHARGE_CONTEXT=yes"}).settings.limit_in_doubt);
}

TEST_CASE("an empty variable that is no limit is unset") {
  const Reading reading = read({"RATION_MODE=", "RATION_LOG=", "RATION_DISABLE=", "RATION_GROUP=", "RATION_CONFIG="});
  CHECK(reading.problems.empty());
  CHECK(reading.settings.origins.empty());
}

TEST_CASE("only RATION_DISABLE=1 disables the library, and then silently") {
  CHECK(read({"RATION_DISABLE=1"}).settings.disabled);
  CHECK(read({"RATION_DISABLE=1", "RATION_LIMIT=x", "RATION_NONSENSE=1"}).problems.empty());
  for (const char *entry : {"RATION_DISABLE=0", "RATION_DISABLE=", "RATION_DISABLE=true", "RATION_DISABLE=11"}) {
    CHECK_FALSE(read({entry}).settings.disabled);
  }
}

TEST_CASE("an unknown variable gets a line with the name that is near and is not fatal") {
  const std::pair<const char *, const char *> rows[] = {
      {"RATION_LIMTI=8g", "RATION_LIMIT"},
      {"RATION_LIMITS=8g", "RATION_LIMIT"},
      {"RATION_LIMIT_0=8g", "RATION_LIMIT (per device: RATION_LIMIT=0=8GiB,GPU-1f2e=50%)"},
      {"RATION_PREALLOC=true", "RATION_PREALLOCATE"},
      {"RATION_ASYNC_PREALLOC=0", "RATION_ASYNC_PREALLOCATE"},
      {"RATION_GROUPLIMIT=1g", "RATION_GROUP_LIMIT"},
      {"RATION_STATEDIR=/x", "RATION_STATE_DIR"},
      {"RATION_LOG_FILE=x", "RATION_LOG"},
      {"RATION_Mode=direct", "RATION_MODE"},
      {"RATION_MEMORY_LIMIT=8g", "RATION_LIMIT"},
      {"RATION_GROUP_LIMITS=8g", "RATION_GROUP_LIMIT"},
      {"RATION_STATE=/x", "RATION_STATE_DIR"},
      {"RATION_MODE", "RATION_MODE"},  // an entry without "="
  };
  for (const auto &[entry, nearest] : rows) {
    INFO(entry);
    const Reading reading = read({entry});
    if (std::string(entry) == "RATION_MODE") {
      CHECK(reading.problems.empty());
      continue;
    }
    REQUIRE(reading.problems.size() == 1);
    INFO(reading.lines());
    const std::string &line = reading.problems[0].line;
    CHECK(line.find(std::string(entry) + ": ") == 0);
    CHECK(line.ends_with(std::string("; the nearest is ") + nearest));
    CHECK_FALSE(reading.problems[0].fatal_for_cli);
    CHECK_FALSE(reading.settings.limit_on(device(0)).asked);
  }
  CHECK(read({"ration_limit=8g", "RATIO_LIMIT=8g", "XRATION_LIMIT=1", "=x", ""}).problems.empty());
}

TEST_CASE("an unknown variable that is near none is named without one") {
  for (const char *name :
       {"RATION_FOO", "RATION_", "RATION_THREADS", "RATION_L", "RATION_X_Y_Z", "RATION_LARGE_ALIGNMENT"}) {
    INFO(name);
    const Reading reading = read({std::string(name) + "=1"});
    CHECK(reading.lines() == std::string(name) + "=1: there is no such setting (`ration env` lists them)\n");
  }
}

TEST_CASE("what is near is the same for a variable, a key and an option") {
  using namespace ration::config;
  std::vector<std::string> flags;
  for (const Option &option : options()) {
    flags.push_back("--" + std::string(option.key));
  }
  const std::vector<std::string_view> words(flags.begin(), flags.end());
  const std::pair<std::string, std::string> rows[] = {{"limti", "limit"},
                                                      {"LIMIT", "limit"},
                                                      {"memory_limit", "limit"},
                                                      {"log_file", "log"},
                                                      {"prealloc", "preallocate"},
                                                      {"gruop", "group"},
                                                      {"show-limit", "show_limit"},
                                                      {"threads", ""},
                                                      {"lo", "log"},
                                                      {"everything", ""},
                                                      {"x", ""}};
  for (const auto &[word, near] : rows) {
    INFO(word);
    CHECK(near_key(word) == near);
    CHECK(near_key("RATION_" + word) == near);
    const Option *option = option_of_key(near);
    CHECK(near_variable("RATION_" + word) == (option == nullptr ? "" : option->variable));
    CHECK(near_word("--" + word, words) == (near.empty() ? "" : "--" + near));
  }
  CHECK(near_key("rulez") == "rules");
  CHECK(near_key("lock") == "locked");
}

TEST_CASE("an unknown name of a megabyte gets one short line") {
  const Reading reading = read({"RATION_" + std::string(1 << 20, 'X') + "=" + std::string(1 << 20, 'y')});
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line.size() < 500);
}

TEST_CASE("a group name has at most 64 characters") {
  CHECK(read({"RATION_GROUP=" + std::string(64, 'g')}).problems.empty());
  CHECK(read({"RATION_GROUP=" + std::string(65, 'g')}).problems.size() == 1);
}

TEST_CASE("control characters in a message are escaped") {
  const std::string line = read({"RATION_LIMIT=\x1b[2J\r\n8g"}).problems.at(0).line;
  CHECK(line.find("RATION_LIMIT=\\x1b[2J\\x0d\\x0a8g: ") == 0);
}

TEST_CASE("a log that is to be compressed is written without the end of its name that says so") {
  CHECK(plain_log("/l/%p.jsonl.zst") == "/l/%p.jsonl");
  CHECK(plain_log("run.zst.zst") == "run.zst");
  for (const char *plain : {"run.jsonl", "run.zst/x", ".zst", "/l/.zst", "zst", ""}) {
    CHECK(plain_log(plain) == plain);
  }
}

TEST_CASE("placeholders of a log path are expanded once, from left to right") {
  CHECK(expand_path("/l/%n-%p@%h.jsonl", 42, "host", "train") == "/l/train-42@host.jsonl");
  CHECK(expand_path("100%%p", 42, "h", "n") == "100%p");
  CHECK(expand_path("%n", 1, "h", "%p%%") == "%p%%");
  CHECK(expand_path("%q%", 1, "h", "n") == "%q%");
  CHECK(expand_path("", 1, "h", "n").empty());
}
