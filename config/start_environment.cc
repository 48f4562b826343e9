#include "config/start_environment.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_set>

#include "config/options.h"
#include "config/third_party/third_party.h"

// Defined by glibc's loader: the stack as the kernel left it for the program (System V ABI, process initialisation).
extern "C" __attribute__((weak)) void *stack_of_start __asm__("__libc_stack_end");

namespace ration::config {

namespace {

// execve allows at most 6 MiB; prctl(PR_SET_MM) can make the text any size.
constexpr std::size_t kMostStackBytes = std::size_t{8} << 20;

// The location of the user's file (XDG Base Directory Specification) is as much a setting as a RATION_* variable is.
constexpr std::string_view kPlaces[] = {"HOME", "XDG_CONFIG_HOME"};

std::string_view name_in(std::string_view entry) {
  return entry.substr(0, std::min(entry.find('='), entry.size()));
}

bool concerns_settings(std::string_view name) {
  return option_of_variable(name) != nullptr || is_third_party_variable(name) ||
         std::find(std::begin(kPlaces), std::end(kPlaces), name) != std::end(kPlaces);
}

}  // namespace

std::vector<std::string> entries_of_settings(std::string_view text) {
  std::vector<std::string> entries;
  for (std::size_t end = text.find('\0'); end != std::string_view::npos; end = text.find('\0')) {
    const std::string_view entry = text.substr(0, end);
    const std::string_view name = name_in(entry);
    if (name.size() < entry.size() && concerns_settings(name)) {
      entries.emplace_back(entry);
    }
    text.remove_prefix(end + 1);
  }
  return entries;
}

// setproctitle(3) or getopt(3) may have moved the arguments themselves, but the text after the highest argument that is
// still on the stack is the variables. After the variables comes the program's path (AT_EXECFN). If the loader was
// started by name, it makes that path one of the arguments; then eight zero bytes end the variables.
std::string_view text_at_start() noexcept {
  if (&stack_of_start == nullptr) {
    return {};
  }
  const auto *const words = static_cast<const std::uintptr_t *>(stack_of_start);  // argc, then argv
  const auto stack = reinterpret_cast<std::uintptr_t>(words);
  std::uintptr_t last = 0;
  for (std::uintptr_t i = 1; i <= words[0] && words[i] != 0; ++i) {
    last = words[i] > stack && words[i] - stack < kMostStackBytes ? std::max(last, words[i]) : last;
  }
  if (last == 0) {
    return {};
  }
  const char *const begin =
      reinterpret_cast<const char *>(last) + std::strlen(reinterpret_cast<const char *>(last)) + 1;
  const char *end = begin;
  const std::uintptr_t path = getauxval(AT_EXECFN);
  if (path > last && path - last < kMostStackBytes) {
    end = reinterpret_cast<const char *>(path);
  } else {
    while (*end != 0) {
      end += std::strlen(end) + 1;
    }
  }
  return std::string_view(begin, static_cast<std::size_t>(end - begin));
}

std::vector<std::string> variables_at_start() {
  if (getauxval(AT_SECURE) != 0) {
    return {};
  }
  std::string text;
  const int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  char chunk[4096];
  for (ssize_t got = file < 0 ? 0 : read(file, chunk, sizeof(chunk)); got > 0 && text.size() < kMostStackBytes;
       got = read(file, chunk, sizeof(chunk))) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  if (file < 0) {
    return entries_of_settings(text_at_start());
  }
  close(file);
  return entries_of_settings(text);
}

std::vector<const char *> with_absent_ones(const char *const *now, const std::vector<std::string> &at_start) {
  std::vector<const char *> entries;
  std::unordered_set<std::string_view> names;
  for (; *now != nullptr; ++now) {
    entries.push_back(*now);
    names.insert(name_in(*now));
  }
  for (const std::string &entry : at_start) {
    if (names.count(name_in(entry)) == 0) {
      entries.push_back(entry.c_str());
    }
  }
  entries.push_back(nullptr);
  return entries;
}

}  // namespace ration::config
