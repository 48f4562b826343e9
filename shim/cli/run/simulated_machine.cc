#include "cli/run/simulated_machine.h"

#include <algorithm>

#include "config/size.h"
#include "config/wording.h"

namespace ration::cli {

namespace {

constexpr int kMostDevices = 16;  // of the simulated driver
constexpr std::string_view kTimes = "\u00d7";
constexpr std::string_view kExample = "; write for example 2x8GiB, 16GiB or 8GiB,4GiB";

// Takes "N×" or "Nx" off the front; 1 where there is none, 0 where N is no count.
int take_count(std::string_view &item) {
  std::size_t end = item.find(kTimes);
  std::size_t next = end + kTimes.size();
  if (end == std::string_view::npos) {
    end = item.find('x');
    next = end + 1;
  }
  if (end == std::string_view::npos) {
    return 1;
  }
  int count = 0;
  for (const char c : item.substr(0, end)) {
    if (c < '0' || c > '9' || count > kMostDevices) {
      return 0;
    }
    count = count * 10 + (c - '0');
  }
  item.remove_prefix(next);
  return count;
}

std::string sentence(std::string what) {
  what += kExample;
  return what;
}

}  // namespace

std::variant<SimulatedDevices, std::string> parse_simulated_devices(std::string_view text) {
  SimulatedDevices devices;
  int total = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    const std::string whole = config::quoted(item);
    begin = end + 1;
    const int count = take_count(item);
    total += count;
    if (count == 0) {
      return sentence(whole + " has no number of devices in front");
    }
    if (total > kMostDevices) {
      return sentence("a simulated machine has at most " + std::to_string(kMostDevices) + " devices");
    }
    const auto size = config::parse_size(item);
    if (const std::string *wrong = std::get_if<std::string>(&size)) {
      return whole + ": " + *wrong;
    }
    if (std::get<config::Size>(size).is_share()) {
      return sentence(whole + " is a share, and a device has a size");
    }
    devices.text += devices.text.empty() ? "" : ",";
    devices.text += std::to_string(count) + "x" + std::get<config::Size>(size).text();
  }
  return devices;
}

}  // namespace ration::cli
