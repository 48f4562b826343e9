#include "events/process_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace ration::events {
namespace {

std::string read_whole(const std::string &path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return text;
  }
  char chunk[4096];
  for (ssize_t got = read(file, chunk, sizeof(chunk)); got > 0; got = read(file, chunk, sizeof(chunk))) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  close(file);
  return text;
}

struct Process {
  std::string pid;
  std::string parent;
  std::string start_time;
};

std::string field(std::string_view text, int index) {
  for (; index > 0; --index) {
    const auto space = text.find(' ');
    if (space == std::string_view::npos) {
      return {};
    }
    text.remove_prefix(space + 1);
  }
  return std::string(text.substr(0, text.find(' ')));
}

std::optional<Process> process(const std::string &pid) {
  const std::string stat = read_whole("/proc/" + pid + "/stat");
  const auto name_end = stat.rfind(')');  // the name may contain spaces and brackets
  if (name_end == std::string::npos || name_end + 2 > stat.size()) {
    return std::nullopt;
  }
  const std::string_view rest = std::string_view(stat).substr(name_end + 2);  // starts at field 3
  return Process{pid, field(rest, 1), field(rest, 19)};
}

bool bears(const std::string &pid, const std::vector<std::string> &marks) {
  const std::string environment = '\0' + read_whole("/proc/" + pid + "/environ");
  for (const std::string &mark : marks) {
    if (environment.find('\0' + mark + '\0') == std::string::npos) {
      return false;
    }
  }
  return true;
}

struct Answer {
  std::vector<std::string> marks;
  std::string tree;
  const Answer *before;
};
constinit std::atomic<const Answer *> latest{nullptr};  // never freed: a forked child reads its parent's

std::string top_of_tree(const std::vector<std::string> &marks) {
  std::optional<Process> top = process(std::to_string(getpid()));
  if (!top) {
    return std::to_string(getpid()) + "-0";
  }
  while (!top->parent.empty() && top->parent != "0" && bears(top->parent, marks)) {
    std::optional<Process> parent = process(top->parent);
    if (!parent) {
      break;
    }
    top = std::move(parent);
  }
  return top->pid + "-" + top->start_time;
}

}  // namespace

// A forked child stays in its parent's tree, even after the parent has ended and /proc no longer shows it.
std::string process_tree(const std::vector<std::string> &marks) {
  const Answer *known = latest.load(std::memory_order_acquire);  // pairs with the release below
  if (known == nullptr || known->marks != marks) {
    known = new Answer{marks, top_of_tree(marks), known};
    latest.store(known, std::memory_order_release);
  }
  return known->tree;
}

std::vector<std::string> command_line() {
  std::vector<std::string> arguments;
  const std::string text = read_whole("/proc/self/cmdline");
  for (std::size_t start = 0; start < text.size();) {
    const auto end = text.find('\0', start);
    arguments.push_back(text.substr(start, end - start));
    start = end == std::string::npos ? text.size() : end + 1;
  }
  return arguments;
}

std::string executable() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

}  // namespace ration::events
