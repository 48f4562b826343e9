#include "cli/run/log_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/file_name.h"
#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/run/run_preparation.h"
#include "config/values/quotes.h"
#include "events/log_file.h"
#include "logs/output/whole_file.h"

namespace ration::cli {

namespace {

constexpr const char *kAnother = "is not a log, and stays as it is; choose another name";
constexpr const char *kIsNew = "a name with %p is new for each process";

// The file that the command's first process would open as its log.
struct LogTarget {
  std::string path;
  std::string shown;             // the path with %p in place of the process's ID
  bool is_known = true;          // the path is known before the start: it has no %p
  bool has_known_folder = true;  // the folder is the same for every process, whatever its ID and name
};

// argv[0] of the process without its folder (program_invocation_short_name(3)).
std::string name_of_process(const Program &program, const std::string &command) {
  std::vector<std::string> words = program.words;
  if (words.size() > 1 && file_name(words.front()) == "env") {
    words = command_of_env(words[1]);
  }
  return std::string(file_name(words.empty() ? command : words.front()));
}

std::string with_number_unexpanded(std::string pattern) {
  for (std::size_t at = pattern.find('%'); at != std::string::npos; at = pattern.find('%', at + 2)) {
    if (at + 1 < pattern.size() && pattern[at + 1] == 'p') {
      pattern.insert(at++, 1, '%');
    }
  }
  return pattern;
}

std::string folder_of_log(const std::string &path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// nullopt if the path is relative and the current folder no longer exists.
std::optional<LogTarget> target_of(const std::string &pattern, const std::string &program) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  std::string begin;
  if (pattern.front() != '/') {
    std::error_code removed;
    begin = std::filesystem::current_path(removed).string() + "/";
    if (removed) {
      return std::nullopt;
    }
  }
  const std::string kept = with_number_unexpanded(pattern);
  const auto expanded = [&](const std::string &from, long pid, const std::string &name) {
    return begin + config::expand_path(config::plain_log(from), pid, host.data(), name);
  };
  const std::string path = expanded(pattern, getpid(), program);
  const bool has_known_folder = folder_of_log(path) == folder_of_log(expanded(pattern, getpid() + 1L, program + "-"));
  return LogTarget{path, expanded(kept, 0, program), kept == pattern, has_known_folder};
}

// The errno of creating a file there; 0 if that works.
int error_of_creating_in(const std::string &folder) {
  int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    std::string temporary = folder + "/.ration-XXXXXX";
    file = mkostemp(temporary.data(), O_CLOEXEC);
    if (file >= 0) {
      unlink(temporary.c_str());
    }
  }
  if (file >= 0) {
    close(file);
    return 0;
  }
  const bool is_ours = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR;
  return is_ours ? 0 : errno;
}

// Decides this as LogFile does.
bool may_be_replaced(int file) {
  std::array<char, events::kLogBegins.size()> head{};
  const ssize_t got = pread(file, head.data(), head.size(), 0);
  return got >= 0 && events::kLogBegins.starts_with({head.data(), static_cast<std::size_t>(got)});
}

// Why an existing file cannot take a log. Empty if it can, or if it is a FIFO, about which LogFile decides.
std::string obstacle_in_file(const std::string &path, const struct stat &status) {
  if (S_ISDIR(status.st_mode)) {
    return "it is a folder, and a log is a file";
  }
  if (!S_ISREG(status.st_mode)) {
    return "";
  }
  const int file = open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  const int error = errno;
  const bool is_replaced = file >= 0 && may_be_replaced(file);
  if (file >= 0) {
    close(file);
    return is_replaced ? "" : std::string("it ") + kAnother;
  }
  switch (error) {
    case EACCES:
    case EPERM:
      return "this user may not write it";
    case EROFS:
      return "it is on a read-only file system";
    case ETXTBSY:
      return "it is a program that runs";
    default:
      return std::string("it cannot be opened: ") + std::strerror(error);
  }
}

std::string obstacle_in_folder(const std::string &folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) {
    return errno == EACCES    ? "this user may not enter " + folder
           : errno == ENOTDIR ? folder + " is not a folder"
                              : "there is no folder " + folder;
  }
  if (!S_ISDIR(status.st_mode)) {
    return folder + " is not a folder";
  }
  switch (const int error = error_of_creating_in(folder)) {
    case 0:
      return "";
    case EACCES:
    case EPERM:
      return "this user may not create files in " + folder;
    case EROFS:
      return "it is on a read-only file system";
    case ENOSPC:
    case EDQUOT:
      return "there is no room in " + folder;
    default:
      return "no file can be created in " + folder + ": " + std::strerror(error);
  }
}

// In words; empty if no obstacle is seen.
std::string obstacle_to(const LogTarget &target) {
  struct stat status {};
  const bool is_there = stat(target.path.c_str(), &status) == 0;
  if (!is_there && errno == ENAMETOOLONG) {
    return "its name is too long";
  }
  if (!is_there && errno == ELOOP) {
    return "symbolic links lead in a circle";
  }
  if (is_there && target.is_known) {
    return obstacle_in_file(target.path, status);
  }
  return target.has_known_folder ? obstacle_in_folder(folder_of_log(target.path)) : "";
}

// True for a device, a pipe, or an output stream of the program itself, wherever that goes.
bool is_stream(const std::string &path) {
  struct stat status {};
  return path.starts_with("/dev/std") || path.starts_with("/dev/fd/") ||
         (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

// Decides as replace_file() does, and uses the same words.
std::string obstacle_to_summary(const std::string &path) {
  struct stat status {};
  struct stat ignored {};
  if (lstat(logs::temporary_beside(path).c_str(), &ignored) != 0 && errno == ENAMETOOLONG) {
    return "its name is too long";
  }
  const bool is_there = lstat(path.c_str(), &status) == 0;
  if (is_there && S_ISDIR(status.st_mode)) {
    return "it is a folder, and a summary is a file";
  }
  if (is_there && !S_ISREG(status.st_mode)) {
    return "it is not a regular file";
  }
  if (is_there && logs::is_log(path)) {
    return "it is a log, and stays as it is";
  }
  return obstacle_in_folder(folder_of_log(path));
}

bool holds_something(const std::string &path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size != 0;
}

// Why the compressed log could not replace the plain one; empty if no reason is seen.
std::string obstacle_of_compression(const LogTarget &target, bool is_compressed) {
  const std::string compressed = target.path + config::kCompressedLog;
  struct stat status {};
  if (is_compressed && stat(compressed.c_str(), &status) != 0 && errno == ENAMETOOLONG) {
    return "cannot write " + compressed + ": its name is too long";
  }
  return is_compressed && holds_something(compressed) && !logs::is_log(compressed) ? compressed + " " + kAnother : "";
}

// The file that the log would replace; empty if there is none. REQUIRES: the obstacles above have not been seen.
std::string lost_to(const LogTarget &target, bool is_compressed, bool is_in_parts) {
  const std::string previous = target.path + ".previous";
  std::vector<std::string> lost = {target.path};
  if (is_compressed) {
    lost.push_back(target.path + config::kCompressedLog);
  }
  if (is_in_parts) {
    lost.push_back(logs::is_log(previous) ? previous : "");
    lost.push_back(is_compressed ? previous + config::kCompressedLog : "");
  }
  const auto first = std::find_if(lost.begin(), lost.end(), holds_something);
  return first == lost.end() ? "" : *first;
}

}  // namespace

std::string obstacle_to_log(const std::string &pattern, const std::string &program) {
  const std::optional<LogTarget> target = target_of(pattern, program);
  if (!target) {
    return "the folder that it would be in was removed";
  }
  const std::string obstacle = obstacle_to(*target);
  return obstacle.empty() ? "" : "cannot write " + target->shown + ": " + obstacle;
}

void refuse_summary_target(const RunRequest &request) {
  if (!request.summary || *request.summary == "json") {
    return;
  }
  const std::string &file = *request.summary;
  const auto refuse = [&](const std::string &why) {
    throw Refusal{kOurError, "--summary " + config::shown(file) + ": " + why};
  };
  if (file == "-") {
    refuse("a summary goes to a file, and stdout is the program's; write, for example, run.json, or json for stderr");
  }
  const std::string path = (std::filesystem::current_path() / file).string();
  if (const std::string obstacle = obstacle_to_summary(path); !obstacle.empty()) {
    refuse("cannot write " + path + ": " + obstacle);
  }
}

bool check_log_target(const RunRequest &request, const config::Settings &settings, const Program &program) {
  const config::Origin *origin = settings.origin_of("log");
  if (settings.log.empty() || settings.disabled || origin == nullptr) {
    return true;
  }
  const auto flag = std::find_if(request.flags.begin(), request.flags.end(),
                                 [](const auto &each) { return each.first->key == "log"; });
  const bool by_flag = flag != request.flags.end() && origin->source == config::Source::kFlag;
  const bool is_within_another = !settings.summary_directory.empty();
  if (!by_flag && is_within_another) {
    return true;  // the outer run has reported it
  }
  const std::string name = name_of_process(program, request.command.front());
  const std::optional<LogTarget> target = target_of(settings.log, name);
  std::string problem = obstacle_to_log(settings.log, name);
  if (by_flag && target && is_stream(target->path)) {
    problem = "a log goes to a regular file, and this is not one; write, for example, run.jsonl";
  }
  if (problem.empty() && target->is_known) {
    const bool is_compressed = config::plain_log(settings.log) != settings.log;
    const bool is_in_parts = settings.log_size.has_value();
    problem = by_flag ? obstacle_of_compression(*target, is_compressed) : "";
    const std::string lost = problem.empty() && !request.force ? lost_to(*target, is_compressed, is_in_parts) : "";
    if (!lost.empty() && by_flag) {
      problem = lost + " is there already; --force overwrites it, and " + kIsNew;
    } else if (!lost.empty()) {
      log_line("run: " + origin->written() + ": " + lost + " is there already and is overwritten; " + kIsNew);
    }
  }
  if (problem.empty()) {
    return true;
  }
  if (by_flag) {
    throw Refusal{usage_status(request), "--log " + config::shown(flag->second) + ": " + problem};
  }
  log_error("run: " + origin->written() + ": " + problem + "; the command is started without a log");
  return settings.log.find("%n") != std::string::npos;  // with %n, another program's log may still be written
}

}  // namespace ration::cli
