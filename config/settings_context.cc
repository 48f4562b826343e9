#include "config/settings_context.h"

#include <sys/auxv.h>

namespace ration::config {

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
