#include "config/files/program_rules.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>

namespace ration::config {

namespace {

std::string read_whole(const char *path, std::size_t most) {
  std::string text;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  char chunk[4096];
  for (ssize_t got = file < 0 ? 0 : read(file, chunk, sizeof(chunk)); got > 0 && text.size() < most;
       got = read(file, chunk, sizeof(chunk))) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  if (file >= 0) {
    close(file);
  }
  text.resize(std::min(text.size(), most));
  return text;
}

std::vector<std::string> read_words() {
  constexpr std::size_t kMost = 4096;  // enough for a pattern; a command line may be megabytes long
  std::string text = read_whole("/proc/self/cmdline", kMost);
  if (!text.empty() && text.back() == '\0') {
    text.pop_back();
  }
  std::vector<std::string> words;
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// True if the kernel started the loader as a program: then there is no interpreter. A static program loads no library,
// so this function does not run in one.
bool is_started_by_loader() {
  return getauxval(AT_BASE) == 0;
}

// The program's file. The loader replaces AT_PHDR by the program's value (glibc's rtld.c).
std::string file_of_program() {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  return file_mapped_at(getauxval(AT_PHDR), read_whole("/proc/self/maps", kMost));
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

std::size_t words_of_loader(const std::vector<std::string> &words) {
  constexpr std::string_view kWithValue[] = {"--library-path",         "--inhibit-rpath",     "--audit", "--preload",
                                             "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask", "--argv0"};
  std::size_t at = 1;
  while (at < words.size() && words[at].substr(0, 2) == "--") {
    at += std::find(std::begin(kWithValue), std::end(kWithValue), words[at]) != std::end(kWithValue) ? 2 : 1;
  }
  return std::min(at, words.size());
}

std::string file_mapped_at(std::uintptr_t address, std::string_view maps) {
  for (; !maps.empty(); maps.remove_prefix(std::min(maps.find('\n'), maps.size() - 1) + 1)) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    const auto dash = std::from_chars(line.data(), line.data() + line.size(), first, 16);
    if (dash.ec == std::errc() && dash.ptr != line.data() + line.size() &&
        std::from_chars(dash.ptr + 1, line.data() + line.size(), end, 16).ec == std::errc() && first <= address &&
        address < end) {
      return std::string(line.substr(std::min(line.find('/'), line.size())));
    }
  }
  return {};
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
  std::vector<std::string> words = read_words();
  if (is_started_by_loader()) {
    if (std::string file = file_of_program(); !file.empty()) {
      program.exe = std::move(file);
    }
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(words_of_loader(words)));
  }
  program.argv = joined_words(words);
  if (program.argv.empty()) {
    program.argv = program_invocation_name;
  }
  return program;
}

// After a mismatch, backtracks only to the latest star, because the match of an earlier star never has to change. The
// time is therefore at most the product of both lengths, while a recursive match would be exponential.
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
