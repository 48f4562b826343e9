// `--sim N×SIZE`: the devices of a simulated machine, as the simulated driver wants to be told. Layer: cli.
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace ration::cli {

struct SimulatedDevices {
  std::string text;  // for SIMCUDA_DEVICES
};

// "8GiB", "2x8GiB" or "2×8GiB", and lists of these; else one sentence that says what is wrong.
std::variant<SimulatedDevices, std::string> parse_simulated_devices(std::string_view text);

}  // namespace ration::cli
