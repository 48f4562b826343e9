// Settings files of one test, and commands that read them.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "child.h"

namespace run_test {

inline constexpr int kNoNamespace = 77;
inline const std::string kMiB100 = "104857600";

inline bool says(const std::string &text, const std::string &part) {
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

// The child sees its own /etc with these system files. Nothing outside the child changes.
inline std::function<void()> with_system_files(const std::vector<std::pair<std::string, std::string>> &files) {
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

inline Ended env(const std::vector<std::string> &arguments, const std::vector<std::string> &environment = {},
                 const std::function<void()> &prepare = {}) {
  std::vector<std::string> line = {COMMAND_UNDER_TEST, "env"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return run(line, environment, prepare);
}

inline std::vector<std::string> for_take(const std::vector<std::string> &environment) {
  std::vector<std::string> all = {"SIMCUDA_DEVICES=4GiB", "SIMCUDA_COSTS=0",
                                  std::string("LD_PRELOAD=") + LIBRARY_FOLDER + "/libration.so", "RATION_MODE=direct",
                                  std::string("LD_LIBRARY_PATH=") + LIBRARY_FOLDER + "/ration/sim"};
  all.insert(all.end(), environment.begin(), environment.end());
  return all;
}

// Counts the 100 MiB blocks that a process gets under the library without `ration run`, as if started by sshd or cron.
inline Ended take(const std::vector<std::string> &environment, const std::function<void()> &prepare = {}) {
  return run({TAKE, "40", kMiB100, "0"}, for_take(environment), prepare);
}

}  // namespace run_test
