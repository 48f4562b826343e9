#include <unistd.h>

#include "config/settings.h"

namespace ration::config {

const char *const *process_environment() {
  return environ;
}

}  // namespace ration::config
