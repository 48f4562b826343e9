// Settings files for one test, in a scratch folder, and the settings read from them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/settings_context.h"
#include "unit/config/environment.h"

namespace ration::config {

class WrittenFiles {
 public:
  WrittenFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "ration-config-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    for (const char *each : {"/system/conf.d", "/user/ration"}) {
      std::filesystem::create_directories(folder_ + each);
    }
  }
  ~WrittenFiles() { std::filesystem::remove_all(folder_); }
  WrittenFiles(const WrittenFiles &) = delete;
  WrittenFiles &operator=(const WrittenFiles &) = delete;

  std::string path(const std::string &name) const { return folder_ + "/" + name; }

  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    std::filesystem::permissions(path(name), std::filesystem::perms(0644));
    return path(name);
  }
  void system(const std::string &text) const { write("system/config.json", text); }
  void drop_in(const std::string &name, const std::string &text) const { write("system/conf.d/" + name, text); }
  void user(const std::string &text) const { write("user/ration/config.json", text); }
  // Returns the entry of the environment that names the file.
  std::string named(const std::string &text) const { return "RATION_CONFIG=" + write("named.json", text); }

  Reading read(std::vector<std::string> entries = {}, const ProgramIdentity &program = {}, bool privileged = false,
               const std::string &framework = "") const {
    entries.push_back("XDG_CONFIG_HOME=" + path("user"));
    std::vector<const char *> block;
    for (const std::string &entry : entries) {
      block.push_back(entry.c_str());
    }
    block.push_back(nullptr);
    const SettingsContext from{block.data(), program, path("system"), privileged, framework, {}};
    Reading reading;
    reading.settings = read_settings(from, reading.problems);
    return reading;
  }

 private:
  std::string folder_;
};

}  // namespace ration::config
