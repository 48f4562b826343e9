#include "cli/usage/snapshot.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string_view>
#include <system_error>

#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/usage/as_user.h"
#include "cli/usage/device_rows.h"
#include "cli/usage/plain_names.h"
#include "cli/usage/process_facts.h"
#include "cli/usage/usage_tables.h"
#include "config/settings_context.h"
#include "config/values/quotes.h"
#include "events/diagnostics.h"

namespace ration::cli {

namespace {

constexpr const char *kFolderOfFolders = "/dev/shm";
constexpr std::string_view kFolderName = "ration-";  // followed by the user's number

struct UsersFolder {
  std::string path;
  std::optional<uid_t> owner;  // none: it is our own, or the owner is unknown
  std::string problem;         // why it is not read
};

UsersFolder folder_of_user(const std::string &path, std::string_view number) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) {
    return {path, {}, {}};  // it no longer exists
  }
  if (!number.empty() && number != std::to_string(found.st_uid)) {
    return {path,
            {},
            path + ": it belongs to user " + user_name(found.st_uid) + "; programs of user " + std::string(number) +
                " cannot use it"};
  }
  return {path, found.st_uid, {}};
}

std::vector<UsersFolder> folders_of_users(const std::string &own) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator each(kFolderOfFolders, error), end; !error && each != end;
       each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (name.starts_with(kFolderName) && name.size() > kFolderName.size() &&
        name.find_first_not_of("0123456789", kFolderName.size()) == std::string::npos) {
      paths.push_back(each->path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<UsersFolder> folders;
  if (std::find(paths.begin(), paths.end(), own) == paths.end()) {
    folders.push_back(folder_of_user(own, {}));
  }
  for (const std::string &path : paths) {
    folders.push_back(folder_of_user(path, std::string_view(path).substr(path.rfind('-') + 1)));
  }
  return folders;
}

std::uint64_t unix_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

Usage usage_in(const UsersFolder &folder) {
  std::string problem = folder.problem;
  std::vector<ledger::Group> groups;
  if (problem.empty()) {
    const AsUser user(folder.owner.value_or(geteuid()));
    groups = ledger::read_groups(folder.path, problem);
  }
  Usage usage = usage_of(groups, problem, unix_now());
  if (folder.owner) {  // the files belong to that user, who may write anything there
    for (ProcessRow &row : usage.processes) {
      row.user = user_name(*folder.owner);
    }
    for (GroupRow &row : usage.groups) {
      row.user = user_name(*folder.owner);
    }
  }
  return usage;
}

bool is_of_this_namespace(const ledger::ProcessIdentity &process) {
  return process.pid_namespace != 0 && process.pid_namespace == own_pid_namespace();
}

void describe_process(ProcessRow &row, bool is_here) {
  std::optional<std::uint32_t> owner;
  if (is_here) {
    row.command = command_line(row.shown_pid());
    owner = owner_of(row.shown_pid());  // in a container the user may have another number
  }
  if (row.user.empty()) {
    row.user = user_name(owner.value_or(row.uid));
  }
}

}  // namespace

StateFolders state_folders(bool of_all_users) {
  StateFolders folders{{}, of_all_users};
  std::vector<config::Problem> problems;
  const config::Settings settings = config::read_settings(config::own_context(), problems);
  for (const config::Problem &problem : problems) {
    if (problem.key == "state_dir") {  // `ration env` reports the others; they concern programs that are started
      log_line(problem.line);
      if (problem.fatal_for_cli) {
        return folders;
      }
    }
  }
  folders.own = settings.state_folder();
  events::explain(events::Level::debug, "the state folder is ", folders.own);
  folders.is_named = settings.origin_of("state_dir") != nullptr;
  return folders;
}

std::string state_folder() {
  return state_folders(false).own;
}

std::string where_looked(const StateFolders &folders) {
  const std::string all = folders.of_all_users ? " and those of all users" : "";
  std::error_code error;
  if (folders.is_named && !std::filesystem::exists(folders.own, error) && !error) {
    return "there is no folder " + config::shown(folders.own) + ", which RATION_STATE_DIR or a file of settings names" +
           (folders.of_all_users ? "; looked in those of all users" : "");
  }
  return "looked in " + config::shown(folders.own) + all;
}

Usage take_snapshot(const StateFolders &folders, NvmlProcess &nvml) {
  Usage usage;
  if (folders.of_all_users) {
    for (const UsersFolder &each : folders_of_users(folders.own)) {
      add_usage(usage, usage_in(each));
    }
    usage.now_unix_ns = unix_now();
  } else {
    usage = usage_in({folders.own, {}, {}});
  }
  HostProcesses here;
  for (ProcessRow &row : usage.processes) {
    row.here = here.find(row);
    describe_process(row, row.here.pid != 0 || is_of_this_namespace(row));
  }
  std::vector<std::string> uuids;
  for (const DeviceRow &device : usage.devices) {
    uuids.push_back(device.uuid);
  }
  add_figures(usage, nvml.all_and(uuids));
  return usage;
}

std::uint64_t own_pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool print_tables(Usage usage, const StateFolders &folders) {
  const bool is_unicode = use_locale();
  if (isatty(STDOUT_FILENO) == 1 && !is_unicode) {
    make_plain(usage);
  }
  for (const std::string &line : all_tables(usage, output_width())) {
    std::cout << line << '\n';
  }
  if (usage.tells_nothing() && usage.problems.empty()) {
    log_error(std::string("no process ") + (usage.is_empty() ? "runs" : "has requested device memory") +
              " under ration here; " + where_looked(folders));
  }
  return flush_stdout();
}

void log_problems(const Usage &usage, std::vector<std::string> &logged) {
  for (const std::string &problem : usage.problems) {
    if (std::find(logged.begin(), logged.end(), problem) == logged.end()) {
      log_line(config::printable(problem));
      logged.push_back(problem);
    }
  }
}

}  // namespace ration::cli
