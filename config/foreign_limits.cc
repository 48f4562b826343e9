// Limits that others set from outside: KAI's, HAMi's, MPS's. Layer: config.
#include <algorithm>

#include "config/foreign_values.h"
#include "config/foreign_words.h"

namespace ration::config {

namespace {

constexpr std::string_view kDeviceLimit = "CUDA_DEVICE_MEMORY_LIMIT";

void read_device_limit(ForeignWords &words, std::string_view variable, std::string_view value) {
  const std::string_view behind = variable.substr(kDeviceLimit.size());
  const std::string_view index = behind.substr(std::min<std::size_t>(behind.size(), 1));
  const bool for_all = behind.empty();
  if (!for_all && (behind.front() != '_' || index.empty() || index.size() > 5 ||
                   index.find_first_not_of("0123456789") != std::string_view::npos)) {
    return;  // no variable of the field
  }
  const auto read = parse_device_limit(value);
  if (const std::string *wrong = std::get_if<std::string>(&read)) {
    words.limit(variable, value, {}, *wrong);
    return;
  }
  const std::optional<Size> &size = std::get<std::optional<Size>>(read);
  if (!size) {
    words.ignore(variable, value, "0 is no limit there", false);
  } else if (for_all) {
    words.limit_everywhere(variable, value, &*size, "");
  } else {
    LimitMap items(1);
    items[0].size = *size;
    items[0].ordinal = std::stoi(std::string(index));
    items[0].name = std::string(index);
    words.limit(variable, value, std::move(items), "");
  }
}

}  // namespace

void hear_limits(ForeignWords &words) {
  constexpr std::string_view kPlain = "GPU_MEMORY_LIMIT";
  if (const auto value = words.value_of(kPlain)) {
    const auto read = parse_plain_bytes(*value);
    const Size *size = std::get_if<Size>(&read);
    words.limit_everywhere(kPlain, *value, size, size == nullptr ? std::get<std::string>(read) : "");
  }
  for (const char *const *entry = words.environment(); *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (text.substr(0, kDeviceLimit.size()) == kDeviceLimit && equals != std::string_view::npos &&
        equals + 1 < text.size()) {
      read_device_limit(words, text.substr(0, equals), text.substr(equals + 1));
    }
  }
  constexpr std::string_view kPinned = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
  if (const auto value = words.value_of(kPinned)) {
    LimitMap items;
    const std::string wrong = parse_pinned_limit(*value, items);
    words.limit(kPinned, *value, std::move(items), wrong);
  }
}

}  // namespace ration::config
