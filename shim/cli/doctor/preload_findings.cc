// Checks LD_PRELOAD and /etc/ld.so.preload: whether they name the library, and what precedes it. Layer: cli.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/file_name.h"
#include "cli/base/file_text.h"
#include "cli/doctor/checkup.h"
#include "cli/launch/elf_file.h"
#include "cli/launch/preload_order.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

constexpr std::uintmax_t kLargestScanned = 64U << 20U;

}  // namespace

bool names_driver_functions(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) > kLargestScanned) {
    return false;
  }
  const std::string bytes = file_text(path).value_or("");
  using namespace std::string_view_literals;
  return bytes.find("\0cuMemAlloc"sv) != std::string::npos || bytes.find("\0cuGetProcAddress"sv) != std::string::npos;
}

namespace {

bool is_loaded_as_ours(const Preload &preload) {
  return !preload.file.empty() && read_elf(preload.file).soname == kOurLibrary;
}

bool may_interpose(const Preload &preload) {
  return !preload.file.empty() && !is_loaded_as_ours(preload) && names_driver_functions(preload.file);
}

std::string reason_of(const Preload &preload) {
  if (preload.error.empty()) {
    return config::printable(preload.file) + " is another library";
  }
  // For a path, the loader only says that it cannot be opened.
  const bool is_open = preload.entry.find('/') == std::string::npos || access(preload.entry.c_str(), R_OK) == 0;
  return is_open ? config::printable(preload.error) : std::strerror(errno);
}

// True if the entry seems meant to name the library but may not: it has quotation marks, or is its folder or a link.
bool is_meant_as_ours(const std::string &entry) {
  constexpr std::string_view kStem = "libration";
  const auto names_it = [&](const std::string &path) {
    const std::size_t at = path.find(kStem);
    return at != std::string::npos && (at == 0 || std::isalnum(static_cast<unsigned char>(path[at - 1])) == 0);
  };
  std::error_code error;
  return names_it(entry) || names_it(std::filesystem::read_symlink(entry, error).string()) ||
         std::filesystem::exists(std::filesystem::path(entry) / kOurLibrary, error);
}

bool is_of_each_program(const std::string &entry) {
  return entry.find("$ORIGIN") != std::string::npos || entry.find("${ORIGIN}") != std::string::npos;
}

// True if a variable of this environment, not only a file, asks for a limit.
bool is_asked_by_variable(const config::Settings &settings) {
  constexpr std::string_view kLimits[] = {"limit", "group_limit", "container_limit", "group", "reserve"};
  return std::any_of(settings.origins.begin(), settings.origins.end(), [&](const config::Origin &each) {
    return std::find(std::begin(kLimits), std::end(kLimits), each.key) != std::end(kLimits) && !is_file(each.source);
  });
}

void check_own_entry(const Preload &own, const Checkup &checkup, Findings &found) {
  const std::string has = own.where + " has " + config::shown(own.entry);
  if (other_library(checkup)) {
    found.push_back({Check::preload_elsewhere, has + ", the command is beside " + checkup.library.preload, {}});
  }
  if (std::none_of(checkup.preloads.begin(), checkup.preloads.end(), may_interpose)) {
    found.push_back({Check::preload, has, {}});
  } else if (count_of(found, Severity::kTrouble) == 0) {
    found.push_back({Check::preload, has + "before any other library that may interpose", {}});
  }
}

}  // namespace

std::optional<Library> other_library(const Checkup &checkup) {
  const auto own = std::find_if(checkup.preloads.begin(), checkup.preloads.end(), is_loaded_as_ours);
  if (own == checkup.preloads.end()) {
    return std::nullopt;
  }
  // The library looks for its core in the folder of the path by which it was loaded, which may be a link.
  const std::filesystem::path core = std::filesystem::path(own->file).parent_path() / "libration-core.so";
  std::error_code error;
  const bool is_installed = std::filesystem::equivalent(own->file, checkup.library.preload, error) &&
                            std::filesystem::equivalent(core, checkup.library.core, error);
  return is_installed ? std::nullopt : std::optional(Library{own->file, core.string(), checkup.library.simulator});
}

Findings check_preloads(const Checkup &checkup) {
  Findings found;
  const auto &preloads = checkup.preloads;
  const auto own = std::find_if(preloads.begin(), preloads.end(), is_loaded_as_ours);
  bool is_named = own != preloads.end();
  for (auto each = preloads.begin(); each != preloads.end(); ++each) {
    const std::string shown = config::shown(each->entry);
    if (is_our_library(each->entry) && checkup.run.command.empty() && is_of_each_program(each->entry)) {
      is_named = true;
      found.push_back({Check::unchecked,
                       each->where + " names " + shown + ", whose folder differs from program to program",
                       "name the program: ration doctor -- COMMAND"});
    } else if (each == own) {
      check_own_entry(*own, checkup, found);
    } else if (own == preloads.end() && (is_our_library(each->entry) || is_meant_as_ours(each->entry))) {
      is_named = true;
      found.push_back({Check::preload_gone,
                       each->where + " names " + shown + ": " + reason_of(*each) + config::likely_cause(shown),
                       {}});
    } else if (may_interpose(*each)) {
      const bool is_first = own != preloads.end() && each < own;
      const std::string too = own != preloads.end() ? ", too" : "";
      found.push_back(is_first ? Finding{Check::preload_interposer_first,
                                         shown + " comes before libration.so in " + own->where +
                                             ", names functions of the driver, too, and may interpose them",
                                         {}}
                               : Finding{Check::preload_interposer,
                                         each->where + " has " + shown + ", which names functions of the driver" + too +
                                             ", and may interpose them",
                                         {}});
    }
  }
  if (is_named || !checkup.settings.limit_asked()) {
    return found;
  }
  if (!checkup.walk && !checkup.run.flags.empty()) {  // they are those of `ration run`, which preloads it
    return found;
  }
  if (checkup.walk) {
    if (!checkup.walk->loss && !checkup.walk->is_elsewhere) {
      found.push_back({Check::preload_by_run,
                       "LD_PRELOAD does not have libration.so: this is how the command would fare under ration run; "
                       "without ration run it has no limit",
                       "start it with ration run"});
    }
  } else if (is_asked_by_variable(checkup.settings)) {
    found.push_back({Check::preload_absent,
                     "a limit is set, but LD_PRELOAD does not have libration.so: a program that is started here as it "
                     "is has no limit",
                     {}});
  } else {
    found.push_back(
        {Check::preload_by_run, "a file sets a limit, which applies only to programs that ration run starts", {}});
  }
  return found;
}

}  // namespace ration::cli::doctor
