#include "cli/usage/top_state.h"

#include <algorithm>

#include "base/saturating.h"

namespace ration::cli {

namespace {

constexpr std::size_t kMostRemembered = 512;  // snapshots

bool type_into(std::string &text, int key) {
  if (key == kEraseKey) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U) {
      text.pop_back();
    }
    if (!text.empty()) {
      text.pop_back();
    }
    return true;
  }
  if (key == kEmptyKey) {
    text.clear();
    return true;
  }
  if (key >= ' ' && key <= 0xff && key != 0x7f) {
    text += static_cast<char>(key);
    return true;
  }
  return false;
}

void handle_typed(int key, TopState &state) {
  if (key == kEscapeKey) {
    state.filter.clear();
  }
  state.is_typing = key != kEscapeKey && key != kEnterKey;
  if (type_into(state.filter, key)) {
    state.first_rows = {};
  }
}

// False: the key does not scroll.
bool scroll(int key, TopPart part, TopState &state) {
  if (key < kUpKey || key > kPageDownKey) {
    return false;
  }
  std::size_t &first = state.first_rows[static_cast<std::size_t>(part)];
  const std::size_t by = key == kUpKey || key == kDownKey ? 1 : state.page_rows[static_cast<std::size_t>(part)];
  first = key == kDownKey || key == kPageDownKey ? first + by : minus_or_zero(first, by);
  return true;
}

TopPart part_after(TopPart part) {
  return part == TopPart::kProcesses ? TopPart::kGroups
         : part == TopPart::kGroups  ? TopPart::kDevices
                                     : TopPart::kProcesses;
}

}  // namespace

void UsageHistory::add(const Usage &usage) {
  for (const DeviceRow &device : usage.devices) {
    reserved_.try_emplace(device.uuid);
  }
  for (auto &[uuid, values] : reserved_) {
    const auto of_uuid = [&uuid = uuid](const DeviceRow &device) { return device.uuid == uuid; };
    const auto found = std::find_if(usage.devices.begin(), usage.devices.end(), of_uuid);
    values.push_back(found == usage.devices.end() ? 0 : found->reserved);
    if (values.size() > kMostRemembered) {
      values.erase(values.begin());
    }
  }
}

const std::vector<std::uint64_t> &UsageHistory::of(const std::string &uuid) const {
  static const std::vector<std::uint64_t> kNothing;
  const auto found = reserved_.find(uuid);
  return found == reserved_.end() ? kNothing : found->second;
}

void handle_key(int key, TopState &state) {
  if (state.is_typing) {
    handle_typed(key, state);
    return;
  }
  if (state.shows_help) {
    state.shows_help = scroll(key, TopPart::kHelp, state);
    state.ended |= key == 'q';
    return;
  }
  for (const SortChoice &each : kSortChoices) {
    if (each.key == key) {
      state.is_reversed = each.sorts_by == state.sorted_by && !state.is_reversed;
      state.sorted_by = each.sorts_by;
    }
  }
  if (key == kEscapeKey) {
    state.filter.clear();
  }
  if (key == kNextKey) {
    state.scrolled = part_after(state.scrolled);
  }
  scroll(key, state.scrolled, state);
  state.is_typing = key == '/';
  if (key == '?') {
    state.shows_help = true;
    state.first_rows[static_cast<std::size_t>(TopPart::kHelp)] = 0;
  }
  state.paused ^= key == ' ';
  state.ended |= key == 'q';
}

}  // namespace ration::cli
