// Locked keys and rules, in processes and in the command.
#include <dlfcn.h>
#include <sys/auxv.h>

#include <filesystem>

#include "catch.h"
#include "files.h"

using run_test::Ended;
using run_test::env;
using run_test::Folder;
using run_test::for_take;
using run_test::kMiB100;
using run_test::kNoNamespace;
using run_test::says;
using run_test::with_system_files;

TEST_CASE("a rule about a program holds where the dynamic loader starts it") {
  Dl_info loader{};
  REQUIRE(dladdr(reinterpret_cast<void *>(getauxval(AT_BASE)), &loader) != 0);
  const Folder folder;
  const std::string take_path = std::filesystem::canonical(TAKE).string();
  const std::pair<const char *, std::string> matches[] = {{"exe", take_path}, {"argv", std::string(TAKE) + " 40 *"}};
  for (const auto &[part, pattern] : matches) {
    INFO(part);
    const std::string path = folder.user(std::string(R"({"rules": [{"match": {")") + part + R"(": ")" + pattern +
                                         R"("}, "limit": "1GiB"}]})");
    for (const std::vector<std::string> &by_loader :
         {std::vector<std::string>{}, {loader.dli_fname}, {loader.dli_fname, "--argv0", "x"}}) {
      std::vector<std::string> line = by_loader;
      line.insert(line.end(), {TAKE, "40", kMiB100, "0"});
      CHECK(run_test::run(line, for_take({folder.home()})).out == "got 10\n");
      line.insert(line.begin(), "--");
      CHECK(says(env(line, {folder.home()}).out, "limit               user file    " + path));
    }
  }
}

TEST_CASE("managed memory counts against a locked limit") {
  const auto files = with_system_files({{"config.json", R"({"limit": "1GiB", "locked": ["limit"]})"}});
  const Ended ended = env({}, {"RATION_MANAGED=count"}, files);
  if (ended.status == kNoNamespace) {
    WARN("the kernel refuses a mount namespace; not tested");
    return;
  }
  CHECK(says(ended.out, "managed             system file  /etc/ration/config.json:1:2: managed=limit (locked)\n"));
  CHECK(says(ended.err, "RATION_MANAGED=count: a locked setting needs managed=limit, which holds"));
}

TEST_CASE("a run that a locked limit cuts down says who cut what, as it was written") {
  const auto files = with_system_files({{"config.json", R"({"limit": "1GiB", "locked": ["limit"]})"}});
  const Ended shown = env({"--sim", "8GiB", "--limit", "50%"}, {}, files);
  if (shown.status == kNoNamespace) {
    WARN("the kernel refuses a mount namespace; not tested");
    return;
  }
  const std::string line =
      "--limit 50%: asks for 4.00GiB of device 0, and gets 1.00GiB: /etc/ration/config.json:1:2: limit=1GiB is "
      "locked\n";
  CHECK(says(shown.err, line));
  const Ended ended = run_test::ration_run({"--sim", "8GiB", "--limit", "50%", TAKE, "40", kMiB100, "0"}, {}, files);
  CHECK(says(ended.out, "got 10\n"));
  CHECK(says(ended.err, line));
}

TEST_CASE("where RATION_DISABLE is forbidden, a run with it is limited, and says that it has no effect") {
  const auto files =
      with_system_files({{"config.json", R"({"limit": "1GiB", "locked": ["limit"]})"}, {"enforced", ""}});
  const Ended ended = run_test::ration_run({"--sim", "8GiB", TAKE, "40", kMiB100, "0"}, {"RATION_DISABLE=1"}, files);
  if (ended.status == kNoNamespace) {
    WARN("the kernel refuses a mount namespace; not tested");
    return;
  }
  INFO(ended.err);
  CHECK(says(ended.out, "got 10\n"));
  CHECK(says(ended.err, "run: RATION_DISABLE=1 has no effect: there is a file /etc/ration/enforced\n"));
  CHECK(
      says(run_test::ration_run({"--sim", "8GiB", "env", "RATION_DISABLE=1", TAKE, "40", kMiB100, "0"}, {}, files).out,
           "got 10\n"));
}

TEST_CASE("ration set lifts no locked limit") {
  const std::string script = std::string(TAKE) +
                             R"( 4 104857600 4 19 & taken=$!
until "$0" ps --json | grep -q "\"pid\": $taken"; do :; done
"$0" set $taken --limit 80%; echo $?; "$0" set $taken --limit 512MiB >/dev/null; kill -KILL $taken)";
  const auto files = with_system_files({{"config.json", R"({"limit": "1GiB", "locked": ["limit"]})"}});
  const Folder folder;
  const Ended ended =
      run_test::ration_run({"--sim", "8GiB", "sh", "-c", script, COMMAND_UNDER_TEST}, {folder.home()}, files);
  if (ended.status == kNoNamespace) {
    WARN("the kernel refuses a mount namespace; not tested");
    return;
  }
  INFO(ended.err);
  CHECK(says(ended.out, "2\n"));
  CHECK(says(ended.err, ", and gets 1.00GiB: /etc/ration/config.json:1:2: limit=1GiB is locked"));
  CHECK(says(ended.err, "ration: set: --limit 80%: asks for 6.40GiB of device GPU-"));
}

TEST_CASE("ration ps looks where the system's file says that ledgers are") {
  const Folder folder;
  const auto files = with_system_files({{"config.json", R"({"state_dir": "relative"})"}});
  const Ended ended = run_test::run({COMMAND_UNDER_TEST, "ps"}, {folder.home()}, files);
  if (ended.status == kNoNamespace) {
    WARN("the kernel refuses a mount namespace; not tested");
    return;
  }
  CHECK(says(ended.err, "/etc/ration/config.json:1:2: state_dir=relative: it must be an absolute path"));
}

TEST_CASE("ration env --check fails a file with a lock that a program can escape") {
  const Folder folder;
  const std::string path = folder.write("f.json", R"({"limit": {"0": "1GiB"}, "locked": ["limit"]})");
  const Ended ended = run_test::run({COMMAND_UNDER_TEST, "env", "--check", path});
  CHECK(ended.status == 125);
  CHECK(says(ended.err, "ration: env: " + path + ":1:2: limit=0=1GiB: ordinals change with CUDA_VISIBLE_DEVICES"));
  CHECK(
      says(ended.err, "RATION_DISABLE=1 lifts the locks of this file; to forbid that, create /etc/ration/enforced\n"));
}
