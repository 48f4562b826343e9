// The value of LD_PRELOAD, and commands that cannot be intercepted.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch.h"
#include "child.h"

using run_test::Ended;
using run_test::ration_run;

namespace {

const std::string kLibrary = std::string(LIBRARY_FOLDER) + "/libration.so";

std::string preloaded(const std::string &probe, const std::vector<std::string> &environment = {}) {
  std::string out = ration_run({probe, "preload"}, environment).out;
  return out.substr(0, out.find('\n'));
}

}  // namespace

TEST_CASE("the library is preloaded once, before other libraries") {
  CHECK(preloaded(PROBE) == kLibrary);
  CHECK(preloaded(PROBE, {"LD_PRELOAD=" + kLibrary}) == kLibrary);
  CHECK(preloaded(PROBE, {"LD_PRELOAD=libm.so.6"}) == kLibrary + ":libm.so.6");
  // In a nested run; an instrumented `ration` has its own runtime first.
  const std::string nested = ration_run({COMMAND_UNDER_TEST, "run", PROBE, "preload"}, {"LD_PRELOAD=libm.so.6"}).out;
  CHECK(nested.find(kLibrary + ":libm.so.6\n") != std::string::npos);
  CHECK(nested.find(kLibrary) == nested.rfind(kLibrary));
}

#ifdef ASAN_PROBE
TEST_CASE("a program with AddressSanitizer runs with its runtime first") {
  const Ended ended = ration_run({ASAN_PROBE, "preload"}, {"ASAN_OPTIONS=verify_asan_link_order=1"});
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK(ended.out.substr(0, 10) == "libasan.so");
  CHECK(ended.out.find(":" + kLibrary + "\n") != std::string::npos);
  // Without its runtime first it does not start.
  CHECK(run_test::run({ASAN_PROBE, "preload"}, {"ASAN_OPTIONS=verify_asan_link_order=1", "LD_PRELOAD=" + kLibrary})
            .status != 0);
}
#endif

TEST_CASE("a command that cannot be intercepted is reported in one line and started only without a limit") {
  for (const char *probe : {STATIC_PROBE, MUSL_PROBE, OLD_PROBE}) {
    INFO(probe);
    const Ended unlimited = ration_run({probe, "preload"});
    CHECK(unlimited.err.find("cannot be intercepted: it ") != std::string::npos);
    CHECK(run_test::lines_in(unlimited.err) == 1);
    const std::pair<std::vector<std::string>, std::vector<std::string>> limits[] = {
        {{"--limit", "50%"}, {}},
        {{"--limit", "3=1g"}, {}},
        {{"--reserve", "1g"}, {}},
        {{}, {"RATION_LIMIT=50%"}},
        {{}, {"RATION_RESERVE=1g"}},
        {{}, {"RATION_GROUP_LIMIT=1g"}},
        {{}, {"GPU_MEMORY_LIMIT=1073741824"}},
        {{}, {"CUDA_DEVICE_MEMORY_LIMIT_0=1g"}},
        {{}, {"RATION_CONTAINER_LIMIT=1g"}},
        {{"--container-limit", "1g"}, {}},
        {{"--group", "a"}, {}},
        {{"--group-tree"}, {}},
        {{"--group-limit", "1g"}, {}},
    };
    for (const auto &[options, environment] : limits) {
      std::vector<std::string> line = options;
      line.insert(line.end(), {probe, "preload"});
      const Ended refused = ration_run(line, environment);
      CHECK(refused.status == 125);
      CHECK(refused.out.empty());
      CHECK(run_test::lines_in(refused.err) == 1);
      CHECK(refused.err.find("nothing was started") != std::string::npos);
    }
  }
  CHECK(ration_run({STATIC_PROBE, "preload"}).out == kLibrary + "\n");  // for its child processes
  CHECK(ration_run({MUSL_PROBE, "preload"}).out == "(none)\n");
  CHECK(ration_run({OLD_PROBE, "preload"}).out == "(none)\n");
  CHECK(ration_run({OLD_PROBE, "preload"}).err.find("old_library/libc.so.6, which lacks the version GLIBC_2.") !=
        std::string::npos);
  CHECK(ration_run({"--reserve", "0", STATIC_PROBE, "preload"}).status == 0);
}

TEST_CASE(
    "a command that starts its program without the library, or without the limit, is refused where a limit is asked") {
  const std::pair<std::vector<std::string>, std::string> lines[] = {
      {{"env", "-u", "LD_PRELOAD", PROBE, "preload"}, "env starts its command without LD_PRELOAD"},
      {{"env", "-i", PROBE, "preload"}, "env starts its command without LD_PRELOAD"},
      {{"nice", "env", "LD_PRELOAD=", PROBE, "preload"}, "env starts its command without LD_PRELOAD"},
      {{"sh", "-c", std::string("env -u LD_PRELOAD ") + PROBE + " preload"},
       "env starts its command without LD_PRELOAD"},
      {{"sh", "-c", std::string("true; LD_PRELOAD= ") + PROBE + " preload"}, "sh takes the library out of LD_PRELOAD"},
      {{"sh", "-c", std::string("unset LD_PRELOAD\n") + PROBE + " preload | cat"}, "sh takes the library out"},
      {{"env", "A=1", STATIC_PROBE, "preload"}, std::string(STATIC_PROBE) + " cannot be intercepted: it "},
      {{"env", "-u", "RATION_LIMIT", PROBE, "preload"}, "env unsets RATION_LIMIT"},
  };
  for (const auto &[words, why] : lines) {
    std::vector<std::string> line = {"--limit", "1GiB"};
    line.insert(line.end(), words.begin(), words.end());
    const Ended refused = ration_run(line);
    INFO(refused.err);
    CHECK(refused.status == 125);
    CHECK(refused.out.empty());
    CHECK(run_test::lines_in(refused.err) == 1);
    CHECK(refused.err.find(why) != std::string::npos);
    CHECK(refused.err.find("nothing was started") != std::string::npos);
  }
  const Ended malformed = ration_run({"--limit", "1GiB", "env", "RATION_LIMIT=bogus", PROBE, "preload"});
  INFO(malformed.err);
  CHECK(malformed.status == 125);
  CHECK(malformed.out.empty());
  CHECK(malformed.err.find("RATION_LIMIT=bogus: it does not begin with a number") != std::string::npos);
  const Ended unlimited = ration_run({"env", "-u", "LD_PRELOAD", PROBE, "preload"});
  CHECK(unlimited.out == "(none)\n");
  CHECK(unlimited.err.find("started without Ration") != std::string::npos);
}

TEST_CASE("a command that may lose the library, or has a limit of its own, is started, with a line that says so") {
  std::string folder = "/tmp/ration-run-test-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/script") << "#!/bin/sh\nif true; then unset LD_PRELOAD; fi\nexec \"$@\"\n";
  REQUIRE(chmod((folder + "/script").c_str(), 0755) == 0);
  const std::pair<std::vector<std::string>, std::string> lines[] = {
      {{folder + "/script", PROBE, "preload"},
       "/script is a script that changes LD_PRELOAD; Ration may be missing there"},
      {{"sh", "-c", std::string(PROBE) + " preload; LD_PRELOAD= " + PROBE + " preload"},
       "sh has a command line that changes LD_PRELOAD; Ration may be missing there"},
      {{"env", "RATION_LIMIT=2GiB", PROBE, "preload"}, "env sets RATION_LIMIT=2GiB, in place of 1GiB"},
  };
  for (const auto &[words, why] : lines) {
    std::vector<std::string> line = {"--limit", "1GiB"};
    line.insert(line.end(), words.begin(), words.end());
    const Ended ended = ration_run(line);
    INFO(ended.err);
    CHECK(ended.status == 0);
    CHECK(ended.err.find(why) != std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a limit is not refused where an inner ration run, or the command itself, keeps the library") {
  for (const std::vector<std::string> &words :
       {std::vector<std::string>{"env", "-u", "LD_PRELOAD", COMMAND_UNDER_TEST, "run", PROBE, "preload"},
        {"env", "LD_PRELOAD=" + kLibrary, PROBE, "preload"},
        {"env", "-u", "OTHER", PROBE, "preload"},
        {"sh", "-c", std::string("true && env -u OTHER ") + PROBE + " preload"},
        {"sh", "-c", std::string("for each in a; do ") + PROBE + " preload; done; : $LD_PRELOAD"},
        {"sh", "-c", std::string(PROBE) + " preload; unset LD_PRELOAD"}}) {
    std::vector<std::string> line = {"--limit", "1GiB"};
    line.insert(line.end(), words.begin(), words.end());
    const Ended ended = ration_run(line);
    INFO(ended.err);
    CHECK(ended.status == 0);
    CHECK(ended.out.find(kLibrary) != std::string::npos);
    CHECK(ended.err.find("LD_PRELOAD") == std::string::npos);
  }
}

TEST_CASE("a script is refused when its interpreter cannot be intercepted") {
  std::string folder = "/tmp/ration-run-test-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/script") << "#!" << STATIC_PROBE << " preload\n";
  chmod((folder + "/script").c_str(), 0755);
  const Ended refused = ration_run({"--limit", "1g", folder + "/script"});
  CHECK(refused.status == 125);
  CHECK(refused.err.find(STATIC_PROBE) != std::string::npos);
  CHECK(ration_run({folder + "/script"}).out == kLibrary + "\n");
  std::filesystem::remove_all(folder);
}

TEST_CASE("a command with a limit is refused exactly where the kernel sets AT_SECURE") {
  std::string folder = "/tmp/ration-run-test-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  REQUIRE(chmod(folder.c_str(), 0755) == 0);
  const std::string program = folder + "/setuid";
  std::filesystem::copy_file(PROBE, program);
  if (getuid() == 0) {
    REQUIRE(chown(program.c_str(), 65534, 65534) == 0);
  }
  REQUIRE(chmod(program.c_str(), 04755) == 0);
  const bool secure = run_test::run({program, "secure"}).out == "secure 1\n";
  const Ended refused = ration_run({"--limit", "1g", program, "secure"});
  CHECK(refused.status == (secure ? 125 : 0));
  CHECK((refused.err.find("setuid") != std::string::npos) == secure);
  CHECK(ration_run({program, "secure"}).status == 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("with RATION_DISABLE=1 no command is refused") {
  const Ended inert = ration_run({"--limit", "1g", STATIC_PROBE, "preload"}, {"RATION_DISABLE=1"});
  CHECK(inert.status == 0);
  CHECK(ration_run({STATIC_PROBE, "preload"}, {"RATION_DISABLE=1"}).err ==
        "ration: nothing was limited or counted: RATION_DISABLE=1\n");
  CHECK(inert.err == "ration: run: RATION_DISABLE=1: nothing is limited or counted\n");
}
