#include "config/values/limit_map.h"

#include <algorithm>
#include <utility>

#include "config/values/ascii.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

constexpr int kLargestOrdinal = 65535;
constexpr std::string_view kItemExample = "write, for example, 0=8GiB,GPU-1f2e=50%";

bool all_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

// "GPU-" and "MIG-" are interchangeable: a MIG instance returns its own UUID from cuDeviceGetUuid_v2.
std::string_view after_uuid_mark(std::string_view lowered) {
  const bool marked = lowered.substr(0, 4) == "gpu-" || lowered.substr(0, 4) == "mig-";
  return marked ? lowered.substr(4) : std::string_view();
}

std::string parse_device(std::string_view name, LimitItem &item) {
  item.name = std::string(name);
  if (all_of(name, "0123456789")) {
    int ordinal = 0;
    for (const char c : name) {
      ordinal = ordinal * 10 + (c - '0');
      if (ordinal > kLargestOrdinal) {
        return "there is no device " + shown(name);
      }
    }
    item.ordinal = ordinal;
    return {};
  }
  const std::string lowered = lower(name);
  item.uuid_prefix = std::string(after_uuid_mark(lowered));
  if (all_of(item.uuid_prefix, "0123456789abcdef-") && item.uuid_prefix[0] != '-') {
    return {};
  }
  if (lowered == "gpu-" || lowered == "mig-") {
    return in_quotes(name) + " fits every device; write at least the first digits of its UUID, as GPU-1f2e";
  }
  return in_quotes(name) +
         " names no device; a device is an ordinal or GPU- and the start of its UUID: " + std::string(kItemExample);
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::string error_in_size(std::string_view text, const std::string &wrong) {
  LimitMap ignored;
  std::string likely(text);
  std::replace(likely.begin(), likely.end(), ';', ',');
  if (likely != text && parse_limit(likely, ignored).empty()) {
    return "items are separated by commas; likely meant: " + likely;
  }
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    likely[colon] = '=';
    if (parse_limit(likely, ignored).empty()) {
      return "a device and its size are joined by =; likely meant: " + likely;
    }
  }
  const bool is_none = wrong.starts_with("0 is no") || wrong.ends_with("above 0");
  return wrong + (is_none ? "; for no limit leave it unset" : "");
}

// Parses one item. `is_alone`: the item is the whole value, and errors quote it.
std::string parse_item(std::string_view text, bool is_alone, LimitItem &item) {
  const std::size_t equals = text.find('=');
  if (text.empty()) {
    return "an item of the list is empty; " + std::string(kItemExample);
  }
  if (equals == std::string_view::npos) {
    return in_quotes(text) + " names no device; " + std::string(kItemExample) + " (use a decimal point, as in 0.4)";
  }
  if (std::string wrong = parse_device(text.substr(0, equals), item); !wrong.empty()) {
    return wrong;
  }
  std::variant<Size, std::string> size = parse_size(text.substr(equals + 1));
  if (std::string *wrong = std::get_if<std::string>(&size)) {
    return (is_alone ? "" : in_quotes(text) + ": ") + error_in_size(text, *wrong);
  }
  item.size = std::get<Size>(size);
  return {};
}

// Returns an error if another item has the same device with a different size; empty: none.
std::string contradiction(const LimitMap &items, const LimitItem &item) {
  for (const LimitItem &other : items) {
    const bool same = other.ordinal == item.ordinal && other.uuid_prefix == item.uuid_prefix;
    if (same && !(other.size == item.size)) {
      return "device " + item.name + " is given both " + other.size.text() + " and " + item.size.text() +
             "; name each device once";
    }
  }
  return {};
}

}  // namespace

std::optional<std::uint64_t> smallest_limit(const LimitMap &items, const DeviceIdentity &device) {
  std::optional<std::uint64_t> smallest;
  for (const LimitItem &item : items) {
    if (item.fits(device)) {
      const std::uint64_t bytes = item.size.bytes_of(device.total_bytes);
      smallest = std::min(smallest.value_or(bytes), bytes);
    }
  }
  return smallest;
}

bool LimitItem::fits(const DeviceIdentity &device) const {
  if (ordinal >= 0) {
    return ordinal == device.ordinal;
  }
  if (uuid_prefix.empty() || device.uuid.empty()) {
    return true;
  }
  const std::string lowered = lower(device.uuid);
  return after_uuid_mark(lowered).substr(0, uuid_prefix.size()) == uuid_prefix;
}

bool set_source_of_new(LimitMap &items, const std::string &written, bool everywhere) {
  bool spread = false;
  for (LimitItem &item : items) {
    if (!item.stated.empty()) {
      continue;
    }
    item.stated = written;
    if (everywhere && item.ordinal >= 0) {
      item.ordinal = -1;
      item.name.clear();
      spread = true;
    }
  }
  return spread;
}

std::string parse_limit(std::string_view text, LimitMap &items) {
  if (text.find_first_of("=,") == std::string_view::npos) {
    std::variant<Size, std::string> size = parse_size(text);
    if (const std::string *wrong = std::get_if<std::string>(&size)) {
      return error_in_size(text, *wrong);
    }
    LimitItem everywhere;
    everywhere.size = std::get<Size>(size);
    items.push_back(everywhere);
    return {};
  }
  std::string first_wrong;
  if (const auto named = std::count(text.begin(), text.end(), ',') + 1; std::cmp_greater(named, kMostDevices)) {
    first_wrong = "it names " + std::to_string(named) + " devices, and " + std::to_string(kMostDevices) +
                  " is the most; name fewer, or write one size for all";
  }
  std::size_t read = 0;
  for (std::size_t begin = 0; begin <= text.size() && read < kMostDevices; ++read) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    LimitItem item;
    // Removes blanks next to a comma, as in 0=8GiB, 1=2GiB. Other blanks are left for the size's parser to refuse.
    const std::string_view part = text.substr(begin, end - begin);
    const bool is_alone = part.size() == text.size();
    std::string wrong = parse_item(is_alone ? part : without_blanks(part), is_alone, item);
    if (wrong.empty()) {
      wrong = contradiction(items, item);
      items.push_back(item);
    }
    if (first_wrong.empty()) {
      first_wrong = wrong;
    }
    begin = end + 1;
  }
  return first_wrong;
}

}  // namespace ration::config
