#include "cli/usage/top_state.h"

#include <algorithm>
#include <utility>

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
    state.first_rows = state.cursors = {};
  }
}

void ask(bool is_signal, TopState &state) {
  if (state.chosen.name.empty() || (is_signal && state.chosen.identity == 0)) {
    state.message = is_signal ? "a signal goes to a process" : "choose a process or a group";
    return;
  }
  state.question = TopQuestion{state.chosen, is_signal, is_signal ? "TERM" : ""};
}

void handle_answer(int key, TopState &state) {
  TopQuestion &question = *state.question;
  const bool is_entered = !question.is_sure && key == kEnterKey && !question.text.empty();
  if (is_entered && question.is_signal && signal_called(question.text) == 0) {
    state.message = "there is no signal " + question.text;
    state.question.reset();
  } else if (is_entered) {
    question.is_sure = true;
  } else if (question.is_sure || key == kEscapeKey) {
    if (key == 'y') {
      state.order = std::move(state.question);
    } else {
      state.message = "nothing was done";
    }
    state.question.reset();
  } else {
    type_into(question.text, key);
  }
}

// False if the key does not scroll.
bool scroll(int key, TopPart part, TopState &state) {
  if (key < kUpKey || key > kPageDownKey) {
    return false;
  }
  std::size_t &first = (has_cursor(part) ? state.cursors : state.first_rows)[static_cast<std::size_t>(part)];
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
    const DeviceRow *const device = usage.device(uuid);
    values.push_back(device == nullptr ? 0 : device->reserved);
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
  state.message.clear();
  if (state.question) {
    handle_answer(key, state);
    return;
  }
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
  if (key == 'L' || key == 'x') {
    ask(key == 'x', state);
  }
  state.is_typing = key == '/';
  if (key == '?') {
    state.shows_help = true;
    state.first_rows[static_cast<std::size_t>(TopPart::kHelp)] = 0;
  }
  state.paused ^= key == ' ';
  state.ended |= key == 'q';
}

}  // namespace ration::cli
