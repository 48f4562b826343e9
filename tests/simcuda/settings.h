// The environment settings of the simulated machine (tests/simcuda/README.md).
// Layer: none. Threads: read once, then immutable; never freed.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simcuda {

struct Fault {
  std::string symbol;
  unsigned long long call;  // 1 = the first call
  int code;
};

// The minimum duration of a call, or of each mapping that a call concerns, instead of the measured duration.
struct NamedCost {
  std::string symbol;
  double microseconds;
};

struct Settings {
  std::vector<std::uint64_t> device_bytes;  // empty: SIMCUDA_DEVICES is invalid
  std::uint64_t context_bytes;
  unsigned least_latency_us;
  unsigned most_latency_us;
  unsigned return_ms;
  std::uint64_t nvml_reserved;  // bytes of each device that NVML reports as reserved by the driver, in addition to the
                                // device's size
  bool integrated = false;      // the devices' memory is the host's
  bool nvml_processes = true;   // NVML knows what processes hold
  bool nvml_all_lists;          // NVML lists each process as one that computes, draws and uses MPS, and keeps accounts
  int nvml_utilisation = -1;    // percent; negative: NVML has no answer
  int nvml_temperature = -1;    // degrees Celsius; negative: NVML has no answer
  bool nvml_reversed;           // NVML lists the devices from the last to the first
  std::string machine;          // folder; empty = this process is alone on its machine
  std::string trace;
  std::string notes;  // folder: a process that asks for something that no simulated driver has leaves its name there
  std::optional<std::string> visible;
  std::vector<std::string> missing;
  bool unheard_of = false;
  std::vector<Fault> faults;
  bool measured_costs = false;  // costs.cc
  std::vector<NamedCost> costs;
  std::map<int, int> attributes;  // overrides for every device's attributes
};

const Settings &settings();

// "8GiB", "2x8GiB", "8GiB,4GiB"; nullopt for anything else. Sizes have the usual syntax (config/values/size_syntax.h)
// and may be any number of bytes.
std::optional<std::vector<std::uint64_t>> parse_devices(std::string_view text);
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// One line on stderr, in one write, without stdio (callable in any state of the process).
void complain(std::string_view line);

}  // namespace simcuda
