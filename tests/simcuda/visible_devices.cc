#include "tests/simcuda/visible_devices.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace simcuda {
namespace {

std::optional<unsigned> device_named(const Machine &machine, std::string name) {
  name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
  name.erase(name.find_last_not_of(' ') + 1);
  unsigned index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error == std::errc{} && end == name.data() + name.size()) {
    return index < machine.devices() ? std::optional(index) : std::nullopt;
  }
  if (name.rfind("GPU-", 0) != 0) return std::nullopt;
  std::optional<unsigned> found;
  for (unsigned i = 0; i < machine.devices(); ++i) {
    if (uuid_text(machine.device(i).uuid).rfind(name, 0) != 0) continue;
    if (found) return std::nullopt;  // ambiguous
    found = i;
  }
  return found;
}

}  // namespace

std::vector<unsigned> visible_devices(const Machine &machine, const std::optional<std::string> &selection) {
  std::vector<unsigned> visible;
  if (!selection) {
    for (unsigned i = 0; i < machine.devices(); ++i) visible.push_back(i);
    return visible;
  }
  std::istringstream list(*selection);
  for (std::string name; std::getline(list, name, ',');) {
    const auto index = device_named(machine, name);
    if (!index || std::find(visible.begin(), visible.end(), *index) != visible.end()) break;
    visible.push_back(*index);
  }
  return visible;
}

std::string uuid_text(const unsigned char (&uuid)[16]) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kHex[uuid[i] >> 4];
    text += kHex[uuid[i] & 15];
  }
  return text;
}

}  // namespace simcuda
