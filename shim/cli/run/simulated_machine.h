// Reads the option `ration run --sim N×SIZE`, which describes simulated devices. Layer: cli.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace ration::cli {

struct SimulatedDevices {
  std::string text;  // the value of SIMCUDA_DEVICES
};

// Reads "8GiB", "2x8GiB" or "2×8GiB", and lists of them. On error, returns a sentence that says what is wrong.
std::variant<SimulatedDevices, std::string> parse_simulated_devices(std::string_view text);

// The error in the option's value, after the option itself. Empty if the value is valid or the option was not given.
std::string error_in_simulation(const std::optional<std::string> &text);

}  // namespace ration::cli
