// Settings files, as read by `ration env`, `ration config` and the library in a process.
#include <dlfcn.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "child.h"

using run_test::Ended;
using run_test::ration_run;

namespace {

constexpr int kNoNamespace = 77;
const std::string kMiB100 = "104857600";

bool says(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "ration-files-XXXXXX").string();
    path_ = mkdtemp(name.data());
    std::filesystem::create_directories(path_ + "/user/ration");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;

  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  std::string user(const std::string &text) const { return write("user/ration/config.json", text); }
  std::string home() const { return "XDG_CONFIG_HOME=" + path_ + "/user"; }
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

// The child sees an /etc of its own with these system files. Nothing outside the child changes.
std::function<void()> with_system_files(const std::vector<std::pair<std::string, std::string>> &files) {
  return [files] {
    const int spaces = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
    if (unshare(spaces) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("etc", "/etc", "tmpfs", 0, nullptr) != 0) {
      _exit(kNoNamespace);
    }
    std::filesystem::create_directories("/etc/ration/conf.d");
    for (const auto &[name, text] : files) {
      std::ofstream("/etc/ration/" + name) << text;
    }
  };
}

Ended env(const std::vector<std::string> &arguments, const std::vector<std::string> &environment = {},
          const std::function<void()> &prepare = {}) {
  std::vector<std::string> line = {COMMAND_UNDER_TEST, "env"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return run_test::run(line, environment, prepare);
}

std::vector<std::string> for_take(const std::vector<std::string> &environment) {
  std::vector<std::string> all = {"SIMCUDA_DEVICES=4GiB", std::string("LD_PRELOAD=") + LIBRARY_FOLDER + "/libration.so",
                                  "RATION_MODE=direct",
                                  std::string("LD_LIBRARY_PATH=") + LIBRARY_FOLDER + "/ration/sim"};
  all.insert(all.end(), environment.begin(), environment.end());
  return all;
}

// Counts the blocks of 100 MiB that a process gets under the library without `ration run`, as sshd or cron starts it.
Ended take(const std::vector<std::string> &environment, const std::function<void()> &prepare = {}) {
  return run_test::run({TAKE, "40", kMiB100, "0"}, for_take(environment), prepare);
}

}  // namespace

TEST_CASE("a limit of the user's file applies to a process without RATION_ variables") {
  const Folder folder;
  folder.user(R"({"limit": "1GiB"})");
  CHECK(take({folder.home()}).out == "got 10\n");
  CHECK(take({folder.home(), "RATION_LIMIT=500MiB"}).out == "got 5\n");
  CHECK(take({folder.home(), "RATION_CONFIG=" + folder.write("c.json", R"({"limit": "2GiB"})")}).out == "got 20\n");
}

TEST_CASE("a framework's variables apply to other programs, not where the framework is loaded") {
  const std::string fraction = "XLA_PYTHON_CLIENT_MEM_FRACTION=0.25";
  CHECK(take({fraction}).out == "got 10\n");
  const std::string both = std::string("LD_PRELOAD=") + LIBRARY_FOLDER + "/libration.so " + FRAMEWORK;
  CHECK(take({fraction, both}).out == "got 38\n");
  CHECK(take({fraction, both, "GPU_MEMORY_LIMIT=1073741824"}).out == "got 10\n");
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

TEST_CASE("ration config --check warns of a lock that a program can escape, in a valid file") {
  const Folder folder;
  const std::string path = folder.write("f.json", R"({"limit": {"0": "1GiB"}, "locked": ["limit"]})");
  const Ended ended = run_test::run({COMMAND_UNDER_TEST, "config", "--check", path});
  CHECK(ended.status == 0);
  CHECK(says(ended.err, "ration: config: " + path + ":1:2: limit=0=1GiB: ordinals change with CUDA_VISIBLE_DEVICES"));
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
  CHECK(says(json.out, "\"files\": [\n    \"" + path + "\"\n  ]"));
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
  CHECK(says(ended.err, "CUDA_DEVICE_MEMORY_LIMIT_0=8GiB: "));
}

TEST_CASE("ration config --check finds the mistakes in a file") {
  const Folder folder;
  const auto check = [](const std::string &path) {
    return run_test::run({COMMAND_UNDER_TEST, "config", "--check", path});
  };
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
  CHECK(says(ended.err, "ration: config: " + bad + ":1:2: limti: there is no such key; the nearest is limit\n"));
  CHECK(says(ended.err, "ration: config: " + bad + ":2:2: mode=fast: it must be one of pool, async, direct\n"));
  CHECK(says(ended.err, "ration: config: " + bad + ":3:29: limit=8Gib: "));
  CHECK(check(folder.path() + "/nothing").status == 125);
  CHECK(check("/dev/zero").status == 125);
}

TEST_CASE("ration config lists the files, the highest precedence first") {
  const Folder folder;
  const std::string user = folder.user("{}");
  const std::string named = folder.write("c.json", "{}");
  const Ended ended = run_test::run({COMMAND_UNDER_TEST, "config"}, {folder.home(), "RATION_CONFIG=" + named});
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
