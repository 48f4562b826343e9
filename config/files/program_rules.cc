#include "config/files/program_rules.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace ration::config {

namespace {

std::string read_words() {
  constexpr std::size_t kMost = 4096;  // enough for a pattern; a command line may have megabytes
  std::string words;
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  char chunk[4096];
  for (ssize_t got = file < 0 ? 0 : read(file, chunk, sizeof(chunk)); got > 0 && words.size() < kMost;
       got = read(file, chunk, sizeof(chunk))) {
    words.append(chunk, static_cast<std::size_t>(got));
  }
  if (file >= 0) {
    close(file);
  }
  words.resize(std::min(words.size(), kMost));
  if (!words.empty() && words.back() == '\0') {
    words.pop_back();
  }
  for (char &c : words) {
    c = c == '\0' ? ' ' : c;
  }
  return words;
}

}  // namespace

std::string joined_words(const std::vector<std::string> &words) {
  std::string joined;
  for (const std::string &word : words) {
    joined += joined.empty() ? "" : " ";
    joined += word;
  }
  return joined;
}

ProgramIdentity this_program() {
  ProgramIdentity program;
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length > 0) {
    program.exe.assign(path, static_cast<std::size_t>(length));
  } else if (const auto *started_as = reinterpret_cast<const char *>(getauxval(AT_EXECFN))) {
    program.exe = started_as;
  }
  program.argv = read_words();
  if (program.argv.empty()) {
    program.argv = program_invocation_name;
  }
  return program;
}

// Backtracks to the latest star only: the match of an earlier one never has to change. So the time is at most the
// product of both lengths, where a recursive match is exponential.
bool fits_pattern(std::string_view text, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::size_t star = std::string_view::npos;
  std::size_t after_star = 0;
  while (at < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      after_star = at;
    } else if (in_pattern < pattern.size() && (pattern[in_pattern] == '?' || pattern[in_pattern] == text[at])) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

}  // namespace ration::config
