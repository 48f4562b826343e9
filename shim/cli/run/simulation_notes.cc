#include "cli/run/simulation_notes.h"

#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>

#include "cli/base/file_text.h"
#include "config/values/quotes.h"

namespace ration::cli {

std::string make_notes_folder(const std::string &folder) {
  const std::string notes = folder + "/notes";
  return mkdir(notes.c_str(), 0700) == 0 ? notes : "";
}

std::string unsupported_runtime(const std::string &notes) {
  std::map<long, std::string> programs;  // by process ID
  std::error_code error;
  for (std::filesystem::directory_iterator entry(notes, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    long pid = 0;
    if (const auto read = std::from_chars(name.data(), name.data() + name.size(), pid); read.ec == std::errc()) {
      programs[pid] = file_text(entry->path()).value_or("");
    }
  }
  if (programs.empty()) {
    return {};
  }
  const auto &[pid, program] = *programs.begin();
  std::string line = config::shown(program) + " (pid " + std::to_string(pid) + ")";
  const std::size_t more = programs.size() - 1;
  line += more == 0 ? " uses" : " and " + std::to_string(more) + (more == 1 ? " other use" : " others use");
  return line +
         " NVIDIA's runtime (libcudart), which does not work with simulated GPUs, for want of the driver's private "
         "tables: use a real GPU, or a program of the driver API";
}

}  // namespace ration::cli
