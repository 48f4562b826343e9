#include "cli/doctor/checkup.h"

namespace ration::cli::doctor {

Checkup begin_checkup(RunRequest run) {
  Checkup checkup{std::move(run), EnvironmentBlock(config::process_environment()), expected_library(), {}, {}, {}, {}};
  checkup.settings = settings_of(checkup.run, checkup.environment, checkup.problems);
  checkup.machine = ask_machine(checkup.environment);
  if (!checkup.machine.driver.devices.empty()) {
    checkup.settings.resolve_devices(checkup.machine.driver.devices, checkup.device_problems);
  }
  return checkup;
}

}  // namespace ration::cli::doctor
