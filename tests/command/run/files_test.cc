// Settings files, as read by `ration env`, `ration env --check` and the library in a process.
#include "files.h"

#include <sys/stat.h>

#include "catch.h"

using run_test::Ended;
using run_test::env;
using run_test::Folder;
using run_test::kMiB100;
using run_test::kNoNamespace;
using run_test::ration_run;
using run_test::says;
using run_test::take;
using run_test::with_system_files;

TEST_CASE("a limit of the user's file applies to a process without RATION_ variables") {
  const Folder folder;
  folder.user(R"({"limit": "1GiB"})");
  CHECK(take({folder.home()}).out == "got 10\n");
  CHECK(take({folder.home(), "RATION_LIMIT=500MiB"}).out == "got 5\n");
  CHECK(take({folder.home(), "RATION_CONFIG=" + folder.write("c.json", R"({"limit": "2GiB"})")}).out == "got 20\n");
}

TEST_CASE("a framework's variables apply to other programs, not where the framework is loaded") {
  const Folder folder;  // GPU_MEMORY_LIMIT is a container's: others of the tests may hold as much
  const std::string fraction = "XLA_PYTHON_CLIENT_MEM_FRACTION=0.25";
  CHECK(take({fraction}).out == "got 10\n");
  const std::string both = std::string("LD_PRELOAD=") + LIBRARY_FOLDER + "/libration.so " + FRAMEWORK;
  CHECK(take({fraction, both}).out == "got 38\n");
  CHECK(take({fraction, both, "GPU_MEMORY_LIMIT=1073741824", "RATION_STATE_DIR=" + folder.path() + "/state"}).out ==
        "got 10\n");
}

TEST_CASE("rules are matched against the running program") {
  const Folder folder;
  folder.user(R"({"limit": "2GiB", "rules": [{"match": {"exe": "*/run_take", "argv": "* 40 *"}, "limit": "1GiB"},
                                             {"match": {"exe": "*/other"}, "limit": "100MiB"}]})");
  CHECK(take({folder.home()}).out == "got 10\n");
}

TEST_CASE("a file that cannot be used gives the strictest reading and one line on stderr") {
  const Folder folder;
  const std::pair<std::string, const char *> rows[] = {
      {"{\"limit\": \"1GiB\"", ":1:16: it is not valid JSON"},
      {"{\"limit\": \"8Gib\"}", ":1:2: limit=8Gib: "},
      {std::string(2 << 20, ' '), ": it is larger than 1 MiB"},
      {std::string("{\0}", 3), ":1:2: it is not valid JSON"},
      {"{\"limit\": \"\xff\"}", ":1:12: it is not valid JSON"},
      {"{\"limit\": " + std::string(100000, '['), "it is nested deeper than 16 levels"},
  };
  for (const auto &[text, expected] : rows) {
    const std::string path = folder.user(text);
    const Ended ended = take({folder.home()});
    INFO(expected << "\n" << ended.err);
    CHECK(ended.status == 0);
    CHECK(ended.out == "got 30\n");
    CHECK(run_test::lines_in(ended.err) == 1);
    CHECK(says(ended.err, path + expected) == (expected[0] == ':'));
    CHECK(says(ended.err, expected));
  }
}

TEST_CASE("a path that is not a regular file never blocks") {
  const Folder folder;
  REQUIRE(mkfifo((folder.path() + "/fifo").c_str(), 0600) == 0);
  REQUIRE(symlink("loop", (folder.path() + "/loop").c_str()) == 0);
  for (const std::string &path : {folder.path() + "/fifo", folder.path() + "/loop", folder.path(),
                                  std::string("/dev/zero"), folder.path() + "/nothing"}) {
    INFO(path);
    const Ended ended = take({"RATION_CONFIG=" + path});
    CHECK(ended.out == "got 30\n");
    CHECK(run_test::lines_in(ended.err) == 1);
    CHECK(says(ended.err, path + ": "));
    CHECK(ration_run({"true"}, {"RATION_CONFIG=" + path}).status == 125);
  }
}

TEST_CASE("a user's file that others may write to is not read") {
  const Folder folder;
  REQUIRE(chmod(folder.user(R"({"log": "/nowhere/x", "limit": "1GiB"})").c_str(), 0666) == 0);
  const Ended ended = take({folder.home()});
  CHECK(ended.out == "got 30\n");
  CHECK(says(ended.err, "other users may write to it"));
  CHECK_FALSE(says(ended.err, "nowhere"));
}

TEST_CASE("system files apply to every process, and a locked key is a ceiling") {
  const auto files = with_system_files(
      {{"config.json", R"({"limit": "1GiB", "locked": ["limit"]})"}, {"conf.d/10.json", R"({"limit": "3GiB"})"}});
  const Ended ended = take({}, files);
  if (ended.status == kNoNamespace) {
    WARN("the kernel refuses a mount namespace; not tested");
    return;
  }
  CHECK(ended.out == "got 10\n");
  CHECK(take({"RATION_LIMIT=2GiB"}, files).out == "got 10\n");
  CHECK(take({"RATION_LIMIT=500MiB"}, files).out == "got 5\n");
  const Ended shown = env({}, {"RATION_LIMIT=2g"}, files);
  CHECK(says(shown.out,
             "limit               environment  RATION_LIMIT=2g\n"
             "  and               system file  /etc/ration/config.json:1:2: limit=1GiB (locked)\n"));
  CHECK(says(env({}, {}, files).out, "limit               conf.d file  /etc/ration/conf.d/10.json:1:2: limit=3GiB\n"));
}

TEST_CASE("ration env shows the source of each value for its command and options") {
  const Folder folder;
  const std::string path =
      folder.user(R"({"limit": "2GiB", "rules": [{"match": {"argv": "* serve"}, "limit": "1GiB"}]})");
  CHECK(says(env({}, {folder.home()}).out, "limit               user file    " + path + ":1:2: limit=2GiB\n"));
  CHECK(says(env({"--", "true", "serve"}, {folder.home()}).out, path + ":1:60: limit=1GiB\n"));
  CHECK(says(env({"--limit", "3g", "--", "true", "--json"}, {folder.home()}).out,
             "limit               flag         RATION_LIMIT=3g\n"));
  const Ended json = env({"--json", "--mode", "direct"}, {folder.home(), "XLA_PYTHON_CLIENT_MEM_FRACTION=0.4"});
  CHECK(json.status == 0);
  CHECK(says(json.out, "\"place\": \"" + path + ":1:2\""));
  CHECK(says(json.out, "\"source\": \"flag\""));
  CHECK(says(json.out, "\"standing\": \"overridden\""));
  CHECK(says(json.out, "\"files\": [\n    {\n      \"path\": \"" + path + "\"\n    }\n  ]"));
}

TEST_CASE("ration env says why a third-party variable was honoured or not") {
  const Ended ended =
      env({}, {"XLA_PYTHON_CLIENT_MEM_FRACTION=0.4", "TF_GPU_ALLOCATOR=cuda_malloc", "CUDA_DEVICE_MEMORY_LIMIT_0=8GiB",
               "RATION_MODE=pool", "XLA_PYTHON_CLIENT_ALLOCATOR=bfc"});
  CHECK(ended.status == 0);
  CHECK(says(ended.out, "XLA_PYTHON_CLIENT_MEM_FRACTION=0.4: honoured: limit = 40%\n"));
  CHECK(says(ended.out, "TF_GPU_ALLOCATOR=cuda_malloc: ignored: "));
  CHECK(says(ended.out, "XLA_PYTHON_CLIENT_ALLOCATOR=bfc: overridden: RATION_MODE=pool takes precedence\n"));
  CHECK(says(ended.out, "CUDA_DEVICE_MEMORY_LIMIT_0=8GiB: refused: "));
  CHECK_FALSE(says(ended.err, "CUDA_DEVICE_MEMORY_LIMIT_0=8GiB: "));  // told once
  const Ended honoured = env({}, {"CUDA_DEVICE_MEMORY_LIMIT_0=8g"});
  CHECK(says(honoured.out, "CUDA_DEVICE_MEMORY_LIMIT_0=8g: honoured: container_limit = 0=8GiB\n"));
  CHECK(says(honoured.out, "container_limit     foreign      CUDA_DEVICE_MEMORY_LIMIT_0=8g\n"));
  CHECK(says(env({"--container-limit", "4g"}, {"CUDA_DEVICE_MEMORY_LIMIT_0=8g"}).out,
             "CUDA_DEVICE_MEMORY_LIMIT_0=8g: overridden: RATION_CONTAINER_LIMIT=4g takes precedence\n"));
}

TEST_CASE("ration env --check finds the mistakes in a file") {
  const Folder folder;
  const auto check = [](const std::string &path) {
    return run_test::run({COMMAND_UNDER_TEST, "env", "--check", path});
  };
  folder.write("enforced", "");
  const Ended good = check(folder.write("good.json", R"({"limit": {"GPU-1f": "8GiB"}, "locked": ["limit"],
      "rules": [{"match": {"exe": "*/x"}, "mode": "direct"}]})"));
  CHECK(good.status == 0);
  CHECK(good.out.empty());
  CHECK(good.err.empty());
  const std::string bad = folder.write("bad.json",
                                       "{\"limti\": \"8g\",\n \"mode\": \"fast\", \"rules\": [\n"
                                       "  {\"match\": {\"exe\": \"*/x\"}, \"limit\": \"8Gib\"}]}");
  const Ended ended = check(bad);
  CHECK(ended.status == 125);
  CHECK(run_test::lines_in(ended.err) == 3);
  CHECK(says(ended.err, "ration: env: " + bad + ":1:2: limti: there is no such key; the nearest is limit\n"));
  CHECK(says(ended.err, "ration: env: " + bad + ":2:2: mode=fast: it must be one of pool, async, direct\n"));
  CHECK(says(ended.err, "ration: env: " + bad + ":3:29: limit=8Gib: "));
  CHECK(check(folder.path() + "/nothing").status == 125);
  CHECK(check("/dev/zero").status == 125);
}

TEST_CASE("ration env --files lists the files, the highest precedence first") {
  const Folder folder;
  const std::string user = folder.user("{}");
  const std::string named = folder.write("c.json", "{}");
  const Ended ended = run_test::run({COMMAND_UNDER_TEST, "env", "--files"}, {folder.home(), "RATION_CONFIG=" + named});
  CHECK(ended.status == 0);
  CHECK(ended.out.find(named + "  named file  read\n" + user + "  user file  read\n") == 0);
  CHECK(says(ended.out, "/etc/ration/config.json  system file  "));
}

TEST_CASE("ration run with an invalid file names it and starts nothing") {
  const Folder folder;
  const std::string path = folder.user("{\"limit\": \"8Gib\"}");
  const Ended ended = ration_run({"echo", "started"}, {folder.home()});
  CHECK(ended.status == 125);
  CHECK(ended.out.empty());
  CHECK(ended.err.find("ration: run: " + path + ":1:2: limit=8Gib: ") == 0);
  CHECK(ration_run({"--limit", "1g", "echo", "started"}, {folder.home()}).status == 0);
}

TEST_CASE("a relative path of RATION_CONFIG is resolved in the folder of the call") {
  const Folder folder;
  folder.write("c.json", R"({"limit": "1GiB"})");
  const auto go = [&] { REQUIRE(chdir(folder.path().c_str()) == 0); };
  CHECK(ration_run({"printenv", "RATION_CONFIG"}, {"RATION_CONFIG=c.json"}, go).out == folder.path() + "/c.json\n");
}
