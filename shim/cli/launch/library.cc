#include "cli/launch/library.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "cli/base/exit_status.h"
#include "events/diagnostics.h"

namespace ration::cli {

void require_readable(const std::string &path) {
  if (access(path.c_str(), R_OK) != 0) {
    throw Refusal{kOurError, path + " is missing or cannot be read; is the installation complete?"};
  }
}

Library expected_library() {
  // The path is relative to this program, so that an installation can be moved.
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    throw Refusal{kOurError,
                  "/proc/self/exe, beside which the library is looked for: " + error.message() + "; is /proc mounted?"};
  }
  const std::filesystem::path prefix = self.parent_path().parent_path();
  const std::filesystem::path lib = prefix / "lib";
  const std::filesystem::path own = lib / "ration";  // a distribution's package keeps private libraries out of lib
  const std::filesystem::path wheel = prefix / "libexec/ration";  // `pip install --target` leaves a wheel's lib out
  const auto holds = [](const std::filesystem::path &folder) {
    return access((folder / "libration.so").c_str(), F_OK) == 0;
  };
  const bool is_of_wheel = !holds(own) && !holds(lib) && holds(wheel);
  const std::filesystem::path folder = is_of_wheel ? wheel : holds(own) ? own : lib;
  return {(folder / "libration.so").string(), (folder / "libration-core.so").string(),
          ((is_of_wheel ? wheel : own) / "sim").string()};
}

bool can_be_preloaded(const std::string &path) {
  return path.find_first_of(" :") == std::string::npos;
}

Library find_library() {
  Library library = expected_library();
  require_readable(library.preload);
  require_readable(library.core);
  if (!can_be_preloaded(library.preload)) {
    throw Refusal{kOurError,
                  library.preload + ": LD_PRELOAD cannot name a path with a blank or a colon; move the installation"};
  }
  events::explain(events::Level::debug, "the library is ", library.preload);
  return library;
}

}  // namespace ration::cli
