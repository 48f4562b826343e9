#include "config/settings_context.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <string>

#include "config/start_environment.h"

namespace ration::config {

// Never null, although `environ` may be: before libc's own constructor (when .preinit_array of the program calls CUDA;
// glibc 2.36), and after clearenv().
const char *const *process_environment() {
  static const char *const none[] = {nullptr};
  return environ != nullptr ? environ : none;
}

SettingsContext own_context() {
  SettingsContext own;
  own.environment = process_environment();
  own.at_start = variables_at_start();
  own.program = this_program();
  own.system_folder = system_folder();
  own.privileged = getauxval(AT_SECURE) != 0;
  return own;
}

std::vector<const char *> environment_of(const SettingsContext &context) {
  return with_absent_ones(context.environment, context.at_start);
}

std::string system_folder() {
  return RATION_SYSTEM_FOLDER;
}

}  // namespace ration::config
