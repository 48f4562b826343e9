#include "cli/launch/process_facts.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/file_name.h"
#include "cli/base/file_text.h"

namespace ration::cli {

namespace {

std::uint64_t namespace_of(const std::string &path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// proc_pid_status(5)
void read_status(const std::string &text, ProcessFacts &facts) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "Name:") {
      words >> std::ws;
      std::getline(words, facts.name);
    } else if (key == "State:") {
      words >> key;
      facts.has_ended = key == "Z" || key == "X";
    } else if (key == "PPid:") {
      words >> facts.parent;
    } else if (key == "Uid:") {
      words >> facts.user;
    } else if (key == "Seccomp:") {
      words >> facts.seccomp;
    } else if (key == "NSpid:") {  // from the reader's namespace to the innermost
      for (int each = 0; words >> each;) {
        facts.inner_pid = each;
      }
    }
  }
}

void read_files(const std::string &text, ProcessFacts &facts) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find('/');
    if (at == std::string::npos) {
      continue;
    }
    MappedFile file{line.substr(at)};
    if (file.path.ends_with(kDeleted)) {
      file.path.resize(file.path.size() - kDeleted.size());
      file.is_deleted = true;
    }
    if (facts.files.empty() || std::none_of(facts.files.begin(), facts.files.end(),
                                            [&](const MappedFile &each) { return each.path == file.path; })) {
      facts.files.push_back(std::move(file));
    }
  }
}

// user_namespaces(7): each line has the first ID inside, the first ID outside as the reader sees it, and their count.
uid_t inner_user(const std::string &map, uid_t user) {
  std::istringstream numbers(map);
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  while (numbers >> inside >> outside >> count) {
    if (user >= outside && user - outside < count) {
      return static_cast<uid_t>(inside + (user - outside));
    }
  }
  return user;
}

// The texts in `bytes`, each of which ends with a NUL.
std::vector<std::string> texts_of(const std::string &bytes) {
  std::vector<std::string> texts;
  std::istringstream parts(bytes);
  for (std::string each; std::getline(parts, each, '\0');) {
    texts.push_back(each);
  }
  return texts;
}

bool read_secure(const std::string &bytes) {
  ElfW(auxv_t) entry{};
  for (std::size_t at = 0; at + sizeof(entry) <= bytes.size(); at += sizeof(entry)) {
    std::memcpy(&entry, bytes.data() + at, sizeof(entry));
    if (entry.a_type == AT_SECURE) {
      return entry.a_un.a_val != 0;
    }
  }
  return false;
}

}  // namespace

std::string ProcessFacts::variable(std::string_view name) const {
  for (const std::string &entry : environment) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

const MappedFile *ProcessFacts::mapped(std::string_view name_begin) const {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const MappedFile &each) { return file_name(each.path).starts_with(name_begin); });
  return found == files.end() ? nullptr : &*found;
}

std::string ProcessFacts::reachable(const std::string &path) const {
  return mount_namespace == namespace_of("/proc/self/ns/mnt") ? path : "/proc/" + std::to_string(pid) + "/root" + path;
}

ProcessFacts read_process(int pid) {
  ProcessFacts facts;
  facts.pid = facts.inner_pid = pid;
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto status = file_text(folder + "/status");
  if (!status || status->empty()) {
    return facts;
  }
  facts.is_there = true;
  read_status(*status, facts);
  constexpr int kThreadMaker = 2;  // kthreadd, the parent of all kernel threads
  // A kernel thread has no memory. The parent is checked as well, because `VmSize` is also missing for a zombie.
  facts.is_kernel_thread = !facts.has_ended && status->find("\nVmSize:") == std::string::npos &&
                           (pid == kThreadMaker || facts.parent == kThreadMaker);
  facts.inner_user = inner_user(file_text(folder + "/uid_map").value_or(""), facts.user);
  facts.pid_namespace = namespace_of(folder + "/ns/pid");
  facts.mount_namespace = namespace_of(folder + "/ns/mnt");
  std::error_code error;
  facts.executable = std::filesystem::read_symlink(folder + "/exe", error).string();
  const auto maps = file_text(folder + "/maps");
  const auto environment = file_text(folder + "/environ");
  facts.is_readable = maps && environment && !facts.executable.empty();
  if (facts.is_readable) {
    read_files(*maps, facts);
    facts.environment = texts_of(*environment);
    facts.words = texts_of(file_text(folder + "/cmdline").value_or(""));
    facts.is_secure = read_secure(file_text(folder + "/auxv").value_or(""));
  }
  return facts;
}

}  // namespace ration::cli
