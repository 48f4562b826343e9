#include <unistd.h>

#include "config/settings.h"

namespace ration::config {

// The effective user owns the files that the process creates.
std::string Settings::state_folder() const {
  return state_directory.empty() ? "/dev/shm/ration-" + std::to_string(geteuid()) : state_directory;
}

}  // namespace ration::config
