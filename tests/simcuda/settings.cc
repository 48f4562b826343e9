#include "tests/simcuda/settings.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "config/values/size_syntax.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kDefaultDeviceBytes = 16ull << 30;
constexpr std::uint64_t kDefaultContextBytes = 256ull << 20;
// H100, H200, driver 580.159, 2026-11-26: 548,995,072 bytes (questions.contexts.costs).
constexpr std::uint64_t kMeasuredContextBytes = 524ull << 20;
constexpr unsigned kDefaultReturnMs = 2;
constexpr unsigned kMostDevices = 16;
constexpr double kMostCost = 1e6;  // microseconds

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  while (true) {
    const auto end = text.find(by);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string text_of(const char *name) {
  const char *value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

template <class Number>
Number number_of(const char *name, Number otherwise) {
  const std::string text = text_of(name);
  if (text.empty()) return otherwise;
  const auto value = whole_number<Number>(text);
  if (!value) complain(std::string("simcuda: ") + name + "=" + text + " is not a number; ignored");
  return value.value_or(otherwise);
}

std::vector<Fault> parse_faults(const std::string &text) {
  std::vector<Fault> faults;
  if (text.empty()) return faults;
  for (const std::string &part : split(text, ',')) {
    const auto at = part.find('@'), colon = part.find(':');
    const auto call = at == std::string::npos || colon == std::string::npos || colon < at
                          ? std::nullopt
                          : whole_number<unsigned long long>(std::string_view(part).substr(at + 1, colon - at - 1));
    const auto code = call ? whole_number<int>(std::string_view(part).substr(colon + 1)) : std::nullopt;
    if (code) {
      faults.push_back({part.substr(0, at), *call, *code});
    } else {
      complain("simcuda: SIMCUDA_FAIL: '" + part + "' is not SYMBOL@CALL:CODE; ignored");
    }
  }
  return faults;
}

// Unset: as measured. Empty or 0: none.
void read_costs(Settings *read) {
  const char *const set = std::getenv("SIMCUDA_COSTS");
  const std::string_view text = set == nullptr ? "h100" : set;
  if (text.empty() || text == "0") return;
  for (const std::string &part : split(text, ',')) {
    if (part == "h100") {
      read->measured_costs = true;
      continue;
    }
    const auto equals = std::min(part.find('='), part.size() - 1);
    const auto microseconds = whole_number<double>(std::string_view(part).substr(equals + 1));
    if (microseconds && *microseconds >= 0 && *microseconds <= kMostCost && part[equals] == '=') {
      read->costs.push_back({part.substr(0, equals), *microseconds});
    } else {
      complain("simcuda: SIMCUDA_COSTS: '" + part + "' is neither h100 nor SYMBOL=MICROSECONDS; ignored");
    }
  }
}

std::map<int, int> parse_attributes(const std::string &text) {
  std::map<int, int> attributes;
  if (text.empty()) return attributes;
  for (const std::string &part : split(text, ',')) {
    const auto equals = std::min(part.find('='), part.size() - 1);
    const auto number = whole_number<int>(std::string_view(part).substr(0, equals));
    const auto value = whole_number<int>(std::string_view(part).substr(equals + 1));
    if (number && value) {
      attributes[*number] = *value;
    } else {
      complain("simcuda: SIMCUDA_ATTRIBUTES: '" + part + "' is not NUMBER=VALUE; ignored");
    }
  }
  return attributes;
}

// "5" or "0-5"; an empty text is 0.
bool parse_range(std::string_view text, unsigned *least, unsigned *most) {
  if (text.empty()) return true;
  const auto dash = text.find('-');
  const auto first = whole_number<unsigned>(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole_number<unsigned>(text.substr(dash + 1));
  if (!first || !last || *first > *last) return false;
  *least = *first;
  *most = *last;
  return true;
}

Settings *read() {
  auto *read = new Settings{};
  const std::string devices = text_of("SIMCUDA_DEVICES");
  if (devices.empty()) {
    read->device_bytes = {kDefaultDeviceBytes};
  } else if (auto parsed = parse_devices(devices)) {
    read->device_bytes = *parsed;
  } else {
    complain("simcuda: SIMCUDA_DEVICES=" + devices + " is not understood (8GiB, 2x8GiB, 8GiB,4GiB)");
  }
  read_costs(read);
  const std::string context = text_of("SIMCUDA_CONTEXT_BYTES");
  const auto context_bytes = parse_bytes(context);
  if (!context.empty() && !context_bytes) complain("simcuda: SIMCUDA_CONTEXT_BYTES=" + context + " is not a size");
  read->context_bytes = context_bytes.value_or(read->measured_costs ? kMeasuredContextBytes : kDefaultContextBytes);
  const std::string latency = text_of("SIMCUDA_LATENCY_US");
  if (!parse_range(latency, &read->least_latency_us, &read->most_latency_us)) {
    complain("simcuda: SIMCUDA_LATENCY_US=" + latency + " is neither a number nor MIN-MAX; ignored");
  }
  read->return_ms = number_of("SIMCUDA_RETURN_MS", kDefaultReturnMs);
  const std::string reserved = text_of("SIMCUDA_NVML_RESERVED");
  const auto reserved_bytes = parse_bytes(reserved.empty() ? "0" : reserved);
  if (!reserved_bytes) complain("simcuda: SIMCUDA_NVML_RESERVED=" + reserved + " is not a size");
  read->nvml_reserved = reserved_bytes.value_or(0);
  const std::string integrated = text_of("SIMCUDA_INTEGRATED");
  read->integrated = !integrated.empty();
  read->nvml_processes = integrated.empty() || integrated == "processes";
  read->nvml_all_lists = text_of("SIMCUDA_NVML_LISTS") == "all";
  read->nvml_utilisation = number_of("SIMCUDA_NVML_UTILISATION", -1);
  read->nvml_temperature = number_of("SIMCUDA_NVML_TEMPERATURE", -1);
  read->nvml_reversed = text_of("SIMCUDA_NVML_ORDER") == "reversed";
  read->machine = text_of("SIMCUDA_MACHINE");
  read->trace = text_of("SIMCUDA_TRACE");
  read->notes = text_of("SIMCUDA_NOTES");
  if (const char *visible = std::getenv("CUDA_VISIBLE_DEVICES")) read->visible = visible;
  read->unheard_of = !text_of("SIMCUDA_UNHEARD_OF").empty();
  if (const std::string missing = text_of("SIMCUDA_MISSING"); !missing.empty()) read->missing = split(missing, ',');
  read->faults = parse_faults(text_of("SIMCUDA_FAIL"));
  read->attributes = parse_attributes(text_of("SIMCUDA_ATTRIBUTES"));
  return read;
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const RationSizeText size = ration_read_size(text.data(), text.size());
  return size.kind == RATION_SIZE_BYTES ? std::optional(size.amount) : std::nullopt;
}

std::optional<std::vector<std::uint64_t>> parse_devices(std::string_view text) {
  std::vector<std::uint64_t> devices;
  for (std::string part : split(text, ',')) {
    if (const auto times = part.find("\u00d7"); times != std::string::npos) {  // two bytes
      part.erase(times, 1);
      part[times] = 'x';
    }
    const auto x = part.find('x');
    const auto count = x == std::string::npos ? 1u : whole_number<unsigned>(part.substr(0, x)).value_or(0);
    const auto bytes = parse_bytes(x == std::string::npos ? part : part.substr(x + 1));
    if (count == 0 || !bytes || *bytes == 0 || devices.size() + count > kMostDevices) return std::nullopt;
    devices.insert(devices.end(), count, *bytes);
  }
  return devices;
}

const Settings &settings() {
  static const Settings *const once = read();  // never destroyed: programs call the driver from exit handlers
  return *once;
}

void complain(std::string_view line) {
  std::string text(line);
  text += '\n';
  // A closed stderr is not an error here.
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace simcuda
