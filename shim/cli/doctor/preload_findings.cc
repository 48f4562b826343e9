// LD_PRELOAD and /etc/ld.so.preload: whether the library is there, and who is before it. Layer: cli.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/file_name.h"
#include "cli/doctor/checkup.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

constexpr const char *kSystemPreload = "/etc/ld.so.preload";
constexpr std::uintmax_t kLargestScanned = 64U << 20U;

std::string text_of(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void check_own_entry(const std::string &entry, const std::string &where, bool is_first, bool has_others,
                     const Checkup &checkup, Findings &found) {
  if (access(entry.c_str(), R_OK) != 0) {
    found.push_back({Check::preload_gone, where + " names " + config::shown(entry) + ": " + std::strerror(errno), {}});
    return;
  }
  std::error_code error;
  if (!std::filesystem::equivalent(entry, checkup.library.preload, error)) {
    found.push_back({Check::preload_elsewhere,
                     where + " has " + config::shown(entry) + ", the command is beside " + checkup.library.preload,
                     {}});
  }
  if (is_first) {
    found.push_back({Check::preload,
                     where + " has " + config::shown(entry) + (has_others ? " before what else may interpose" : ""),
                     {}});
  }
}

}  // namespace

std::vector<std::string> entries_of_preload(std::string_view text) {
  std::vector<std::string> entries;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" :\t\n"), text.size());
    if (end > 0) {
      entries.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return entries;
}

bool is_our_library(std::string_view path) {
  return file_name(path) == "libration.so";
}

bool names_driver_functions(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) > kLargestScanned) {
    return false;
  }
  const std::string bytes = text_of(path);
  using namespace std::string_view_literals;
  return bytes.find("\0cuMemAlloc"sv) != std::string::npos || bytes.find("\0cuGetProcAddress"sv) != std::string::npos;
}

namespace {

bool names_driver_functions_of_others(const std::string &path) {
  return !is_our_library(path) && names_driver_functions(path);
}

// Whether a variable of this environment asks for a limit, and no file alone.
bool is_asked_by_variable(const config::Settings &settings) {
  constexpr std::string_view kLimits[] = {"limit", "group_limit", "container_limit", "group", "reserve"};
  return std::any_of(settings.origins.begin(), settings.origins.end(), [&](const config::Origin &each) {
    return std::find(std::begin(kLimits), std::end(kLimits), each.key) != std::end(kLimits) && !is_file(each.source);
  });
}

}  // namespace

Findings check_preloads(const Checkup &checkup) {
  Findings found;
  bool is_there = false;
  const auto look_at = [&](const std::vector<std::string> &entries, const std::string &where) {
    std::vector<std::string> before;
    for (const std::string &entry : entries) {
      if (is_our_library(entry)) {
        for (const std::string &other : before) {
          found.push_back({Check::preload_interposer_first,
                           config::shown(other) + " comes before libration.so in " + where +
                               ", names functions of the driver, too, and may interpose them",
                           {}});
        }
        if (!is_there) {
          const bool has_others = std::any_of(entries.begin(), entries.end(), names_driver_functions_of_others);
          check_own_entry(entry, where, before.empty(), has_others, checkup, found);
        }
        is_there = true;
        before.clear();
      } else if (names_driver_functions(entry)) {
        if (is_there) {
          found.push_back({Check::preload_interposer,
                           where + " has " + config::shown(entry) +
                               ", which names functions of the driver, too, and may interpose them",
                           {}});
        } else {
          before.push_back(entry);
        }
      }
    }
    for (const std::string &other : is_there ? std::vector<std::string>{} : before) {
      found.push_back(
          {Check::preload_interposer,
           where + " has " + config::shown(other) + ", which names functions of the driver, and may interpose them",
           {}});
    }
  };
  look_at(entries_of_preload(checkup.environment.value("LD_PRELOAD")), "LD_PRELOAD");
  look_at(entries_of_preload(text_of(kSystemPreload)), kSystemPreload);
  if (!is_there && checkup.run.command.empty() && checkup.settings.limit_asked()) {
    const bool by_variable = is_asked_by_variable(checkup.settings);
    found.push_back({by_variable ? Check::preload_absent : Check::preload_by_run,
                     by_variable
                         ? "a limit is set, but LD_PRELOAD does not have libration.so: a program that is started here "
                           "as it is has no limit"
                         : "a file sets a limit, which holds for what ration run starts, and no other program",
                     {}});
  }
  return found;
}

}  // namespace ration::cli::doctor
