#include "config/settings_context.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace ration::config {

namespace {

// The initial environment of the process (proc(5)). Empty without /proc.
std::string read_initial_environment() {
  std::string text;
  const int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  char chunk[4096];
  for (ssize_t got = file < 0 ? 0 : read(file, chunk, sizeof(chunk)); got > 0; got = read(file, chunk, sizeof(chunk))) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  if (file >= 0) {
    close(file);
  }
  return text;
}

const char *const *initial_environment() {
  struct Environment {
    std::string text = read_initial_environment();
    std::vector<const char *> entries;
  };
  static const auto *const leaked = [] {
    auto *read = new Environment;
    for (std::size_t start = 0; start < read->text.size(); start += std::strlen(read->text.c_str() + start) + 1) {
      read->entries.push_back(read->text.c_str() + start);
    }
    read->entries.push_back(nullptr);
    return read;
  }();
  return leaked->entries.data();
}

}  // namespace

// `environ` is null before libc's own constructor (a CUDA call from the program's .preinit_array; glibc 2.36) and after
// clearenv(). In both cases the limit must still hold.
const char *const *process_environment() {
  return environ != nullptr ? environ : initial_environment();
}

SettingsContext own_context() {
  SettingsContext own;
  own.environment = process_environment();
  own.program = this_program();
  own.system_folder = system_folder();
  own.privileged = getauxval(AT_SECURE) != 0;
  return own;
}

std::string system_folder() {
  return RATION_SYSTEM_FOLDER;
}

}  // namespace ration::config
