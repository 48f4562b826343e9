#include "cli/doctor/loading_probe.h"

#include <dlfcn.h>

#include <filesystem>
#include <iostream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "cli/base/exit_status.h"
#include "cli/base/file_text.h"
#include "cli/doctor/checkup.h"
#include "cli/launch/preload_order.h"
#include "cli/run/driver_probe.h"

namespace ration::cli::doctor {

namespace {

constexpr const char *kLoaded = "loaded";
constexpr const char *kSystemPreload = "/etc/ld.so.preload";

// Parses the output of `ld.so --list`: a line for each file, those of LD_PRELOAD first, and errors.
void read_list(const std::string &text, Preload &preload) {
  constexpr std::string_view kError = "from LD_PRELOAD cannot be preloaded (";
  constexpr std::string_view kNames = " => ";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t error = line.find(kError); error != std::string::npos) {
      const std::size_t begin = error + kError.size();
      preload.error = line.substr(begin, line.rfind("): ignored") - begin);
    } else if (preload.file.empty() && line.starts_with("\t") && !line.starts_with("\tlinux-")) {  // not the vDSO
      const std::size_t names = line.find(kNames);
      const std::size_t begin = names == std::string::npos ? 1 : names + kNames.size();
      preload.file = line.substr(begin, line.rfind(" (0x") - begin);
    }
  }
  if (preload.error.empty() && preload.file == "not found") {
    preload.error = "cannot open shared object file";
  }
  std::error_code ignored;
  preload.file = preload.error.empty() ? std::filesystem::absolute(preload.file, ignored).string() : "";
}

}  // namespace

std::vector<std::string> errors_of_loading(const Library &library, const EnvironmentBlock &environment) {
  const std::vector<std::string> files = {library.core, library.preload};
  std::istringstream lines(ask_without_library(environment, "loading", files));
  std::vector<std::string> errors;
  for (const std::string &path : files) {
    std::string line;
    if (!std::getline(lines, line)) {
      errors.push_back(path + ": the process that loads it crashes, or hangs");
      break;
    }
    if (line != kLoaded) {
      errors.push_back(line);
    }
  }
  return errors;
}

int answer_loading(const std::vector<std::string> &files) {
  for (const std::string &path : files) {
    const bool is_loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
    const char *error = is_loaded ? nullptr : dlerror();
    std::cout << (is_loaded ? kLoaded : error != nullptr ? error : path) << std::endl;
  }
  return std::cout ? 0 : kOurError;
}

std::vector<Preload> preloads_of(const Program &program, const EnvironmentBlock &environment) {
  std::vector<Preload> preloads;
  for (std::string &entry : entries_of_preload(environment.value("LD_PRELOAD"))) {
    preloads.push_back({std::move(entry), "LD_PRELOAD", {}, {}});
  }
  const std::string of_system = file_text(kSystemPreload).value_or("");
  for (std::string &entry : entries_of_preload(of_system, kBetweenEntriesOfFile)) {
    preloads.push_back({std::move(entry), kSystemPreload, {}, {}});
  }
  // The loader replaces $ORIGIN by the folder of the path without links, which the kernel reports.
  std::error_code error;
  const std::string runs = std::filesystem::canonical(program.runs, error).string();
  for (Preload &preload : preloads) {
    const char *const none[] = {nullptr};
    EnvironmentBlock plain(none);
    plain.set("LD_PRELOAD", preload.entry);
    for (const char *name : {"LD_LIBRARY_PATH", "GLIBC_TUNABLES"}) {
      if (const std::string value = environment.value(name); !value.empty()) {
        plain.set(name, value);
      }
    }
    const std::string &loader = program.elf.interpreter;
    read_list(output_of(plain, loader, {loader, "--list", runs}, true), preload);
  }
  return preloads;
}

}  // namespace ration::cli::doctor
