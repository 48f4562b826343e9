// What is preloaded, in which order, and what cannot be intercepted.
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

TEST_CASE("the library stands in front of what is preloaded already, once") {
  CHECK(preloaded(PROBE) == kLibrary);
  CHECK(preloaded(PROBE, {"LD_PRELOAD=" + kLibrary}) == kLibrary);
  CHECK(preloaded(PROBE, {"LD_PRELOAD=libm.so.6"}) == kLibrary + ":libm.so.6");
  // Inside another run; an instrumented `ration` has its own runtime in front.
  const std::string nested = ration_run({COMMAND_UNDER_TEST, "run", PROBE, "preload"}, {"LD_PRELOAD=libm.so.6"}).out;
  CHECK(nested.find(kLibrary + ":libm.so.6\n") != std::string::npos);
  CHECK(nested.find(kLibrary) == nested.rfind(kLibrary));
}

#ifdef ASAN_PROBE
TEST_CASE("a program under AddressSanitizer runs, its runtime first") {
  const Ended ended = ration_run({ASAN_PROBE, "preload"}, {"ASAN_OPTIONS=verify_asan_link_order=1"});
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK(ended.out.substr(0, 10) == "libasan.so");
  CHECK(ended.out.find(":" + kLibrary + "\n") != std::string::npos);
  // Without its runtime in front it would not even start.
  CHECK(run_test::run({ASAN_PROBE, "preload"}, {"ASAN_OPTIONS=verify_asan_link_order=1", "LD_PRELOAD=" + kLibrary})
            .status != 0);
}
#endif

TEST_CASE("what cannot be intercepted is told in one line, and started only where no limit was asked for") {
  for (const char *probe : {STATIC_PROBE, MUSL_PROBE}) {
    INFO(probe);
    const Ended free = ration_run({probe, "preload"});
    CHECK(free.err.find("cannot be intercepted: it ") != std::string::npos);
    CHECK(run_test::lines_in(free.err) == 1);
    const std::pair<std::vector<std::string>, std::vector<std::string>> limits[] = {
        {{"--limit", "50%"}, {}},
        {{"--limit", "3=1g"}, {}},
        {{"--reserve", "1g"}, {}},
        {{}, {"RATION_LIMIT=50%"}},
        {{}, {"RATION_RESERVE=1g"}},
        {{}, {"RATION_GROUP_LIMIT=1g"}},
        {{}, {"GPU_MEMORY_LIMIT=1073741824"}},
        {{"--group", "a"}, {}},
        {{"--group-tree"}, {}},
        {{"--group-limit", "1g"}, {}},
    };
    for (const auto &[options, environment] : limits) {
      std::vector<std::string> line = options;
      line.insert(line.end(), {probe, "preload"});
      const Ended held = ration_run(line, environment);
      CHECK(held.status == 125);
      CHECK(held.out.empty());
      CHECK(run_test::lines_in(held.err) == 1);
      CHECK(held.err.find("nothing was started") != std::string::npos);
    }
  }
  CHECK(ration_run({STATIC_PROBE, "preload"}).out == kLibrary + "\n");  // for the programs that it starts
  CHECK(ration_run({MUSL_PROBE, "preload"}).out == "(none)\n");
  CHECK(ration_run({"--reserve", "0", STATIC_PROBE, "preload"}).status == 0);
}

TEST_CASE("a script is refused for the sake of its interpreter") {
  std::string folder = "/tmp/ration-run-test-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/script") << "#!" << STATIC_PROBE << " preload\n";
  chmod((folder + "/script").c_str(), 0755);
  const Ended held = ration_run({"--limit", "1g", folder + "/script"});
  CHECK(held.status == 125);
  CHECK(held.err.find(STATIC_PROBE) != std::string::npos);
  CHECK(ration_run({folder + "/script"}).out == kLibrary + "\n");
  std::filesystem::remove_all(folder);
}

TEST_CASE("a limit is refused to a program exactly where the kernel would make it secure") {
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
  const Ended held = ration_run({"--limit", "1g", program, "secure"});
  CHECK(held.status == (secure ? 125 : 0));
  CHECK((held.err.find("setuid") != std::string::npos) == secure);
  CHECK(ration_run({program, "secure"}).status == 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("an inert library limits nothing, so nothing is refused for its sake") {
  const Ended inert = ration_run({"--limit", "1g", STATIC_PROBE, "preload"}, {"RATION_DISABLE=1"});
  CHECK(inert.status == 0);
  CHECK(inert.err == "ration: nothing was limited or counted: RATION_DISABLE=1\n");
}
