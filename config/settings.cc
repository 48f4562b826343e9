#include "config/settings.h"

#include <unistd.h>

#include <algorithm>

#include "config/options.h"

namespace ration::config {

namespace {

constexpr std::uint64_t kLeastHeadroom = 512 * kMiB;
constexpr std::uint64_t kHeadroomPart = 50;  // of the device's total: 2 %

std::uint64_t three_quarters(std::uint64_t total) {
  return total / 4 * 3 + total % 4 * 3 / 4;
}

}  // namespace

const Origin *Settings::origin_of(std::string_view key) const {
  const auto found = std::find_if(origins.begin(), origins.end(), [&](const Origin &each) { return each.key == key; });
  return found == origins.end() ? nullptr : &*found;
}

std::vector<std::string> Settings::explained() const {
  std::vector<std::string> sentences;
  for (const std::string &file : files) {
    sentences.push_back("settings are read from " + file);
  }
  for (const Origin &origin : origins) {
    if (option_of_key(origin.key)->scope == Scope::kInternal) {
      continue;
    }
    sentences.push_back("setting " + origin.in_force() + (origin.locked ? ", locked by a system file" : "") + " (" +
                        std::string(name_of(origin.source)) + ")");
  }
  for (const ThirdPartyVariable &each : third_party) {
    sentences.push_back("variable " + each.variable + "=" + each.value + ": " + std::string(name_of(each.disposition)) +
                        (each.reason.empty() ? "" : ", " + each.reason));
  }
  return sentences;
}

bool Settings::limit_asked() const {
  const auto takes_some = [](const Size &each) { return each != Size::of_bytes(0); };
  return !limit.empty() || !groups.empty() || !stray_group_limit.empty() || limit_in_doubt ||
         (reserve && takes_some(*reserve)) || std::any_of(more_reserves.begin(), more_reserves.end(), takes_some);
}

Settings::Limit Settings::limit_on(const DeviceIdentity &device) const {
  const std::uint64_t total = device.total_bytes;
  Limit result{false, total};
  const auto hold = [&result](std::uint64_t bytes) {
    result.asked = true;
    result.bytes = std::min(result.bytes, bytes);
  };
  for (const LimitMap *items : {&limit, &stray_group_limit}) {
    if (const auto bytes = smallest_limit(*items, device)) {
      hold(*bytes);
    }
  }
  const auto hold_reserve = [&](const Size &size) {
    if (size != Size::of_bytes(0)) {
      hold(total - std::min(total, size.bytes_of(total)));
    }
  };
  if (reserve) {
    hold_reserve(*reserve);
  }
  std::for_each(more_reserves.begin(), more_reserves.end(), hold_reserve);
  if (limit_in_doubt) {
    hold(three_quarters(total));
  }
  return result;
}

std::optional<std::uint64_t> Settings::group_limit_on(const Group &group, const DeviceIdentity &device) const {
  const std::uint64_t total = device.total_bytes;
  std::optional<std::uint64_t> least;
  const auto hold = [&](std::uint64_t bytes) { least = std::min(least.value_or(total), bytes); };
  if (const auto bytes = smallest_limit(group.limit, device)) {
    hold(*bytes);
  }
  if (group.in_doubt) {
    hold(three_quarters(total));
  }
  return least;
}

Settings::Preallocation Settings::preallocation_on(const DeviceIdentity &device, bool asked) const {
  const std::uint64_t total = device.total_bytes;
  const Limit held = limit_on(device);
  Preallocation result;
  if (const Size *size = std::get_if<Size>(&preallocate)) {
    result.bytes = std::min(size->bytes_of(total), held.bytes);
  } else if (const auto kind = std::get<Preallocate>(preallocate);
             kind == Preallocate::kTrue || (kind == Preallocate::kAuto && (asked || held.asked))) {
    result.bytes = held.asked ? held.bytes : three_quarters(total);
    result.fair = true;
  }
  result.after = preallocate_after.bytes_of(total);
  result.leaves_context = !headroom;
  result.headroom = headroom ? headroom->bytes_of(total) : std::max(kLeastHeadroom, total / kHeadroomPart);
  return result;
}

std::uint64_t Settings::guarantee_on(const DeviceIdentity &device) const {
  const bool is_named =
      std::any_of(groups.begin(), groups.end(), [](const Group &each) { return each.kind == Group::Kind::kNamed; });
  return is_named ? std::min(smallest_limit(guarantee, device).value_or(0), limit_on(device).bytes) : 0;
}

// The folder is named after the effective user, who owns the files that the process creates.
std::string Settings::state_folder() const {
  return state_directory.empty() ? "/dev/shm/ration-" + std::to_string(geteuid()) : state_directory;
}

std::string expand_path(std::string_view pattern, long pid, std::string_view host, std::string_view program) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char mark = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    switch (mark) {
      case 'p':
        out += std::to_string(pid);
        break;
      case 'h':
        out += host;
        break;
      case 'n':
        out += program;
        break;
      case '%':
        out += '%';
        break;
      default:
        out += pattern[i];
        continue;  // only the % was copied
    }
    ++i;
  }
  return out;
}

std::string plain_log(const std::string &path) {
  const std::string_view suffix = kCompressedLog;
  const bool ends = path.size() > suffix.size() && path[path.size() - suffix.size() - 1] != '/' &&
                    std::string_view(path).substr(path.size() - suffix.size()) == suffix;
  return ends ? path.substr(0, path.size() - suffix.size()) : path;
}

}  // namespace ration::config
