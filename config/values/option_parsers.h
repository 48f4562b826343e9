// Parsers that read option values into members of Settings; options.inc names them.
// Layer: config. A parser returns the error, or an empty string. After an error, a limit keeps the items that could be
// parsed, and any other member is unchanged.
#pragma once

#include <string>
#include <string_view>

#include "config/options.h"
#include "config/settings.h"

namespace ration::config {

// The index of `value` among the blank-separated `words`, or -1 if it is not among them.
int place_of(std::string_view value, std::string_view words);
std::string error_in_choice(std::string_view value, std::string_view words);
std::string read_bool(std::string_view value, bool &out);
std::string read_plain_text(std::string_view value, std::string &out);
// A number of seconds, or a number with the unit ms, s, m or h; rounded down to a millisecond.
std::string read_milliseconds(std::string_view value, std::chrono::milliseconds &out);

std::string read_limit(Settings &settings, const Option &option, std::string_view value);
std::string read_guarantee(Settings &settings, const Option &option, std::string_view value);
std::string read_preallocate(Settings &settings, const Option &option, std::string_view value);
std::string read_async_preallocate(Settings &settings, const Option &option, std::string_view value);
std::string read_group(Settings &settings, const Option &option, std::string_view value);
std::string read_group_limit(Settings &settings, const Option &option, std::string_view value);
std::string read_container_limit(Settings &settings, const Option &option, std::string_view value);
std::string read_group_tree(Settings &settings, const Option &option, std::string_view value);
std::string read_state_directory(Settings &settings, const Option &option, std::string_view value);
std::string read_log(Settings &settings, const Option &option, std::string_view value);
std::string read_diagnostics(Settings &settings, const Option &option, std::string_view value);
std::string read_faults(Settings &settings, const Option &option, std::string_view value);
std::string read_disable(Settings &settings, const Option &option, std::string_view value);

template <auto kMember>
std::string read_choice(Settings &settings, const Option &option, std::string_view value) {
  const int place = place_of(value, option.values);
  if (place < 0) {
    return error_in_choice(value, option.values);
  }
  auto &member = settings.*kMember;
  member = static_cast<std::remove_reference_t<decltype(member)>>(place);
  return {};
}

template <auto kMember>
std::string read_switch(Settings &settings, const Option &, std::string_view value) {
  return read_bool(value, settings.*kMember);
}

template <auto kMember>
std::string read_text(Settings &settings, const Option &, std::string_view value) {
  return read_plain_text(value, settings.*kMember);
}

template <auto kMember>
std::string read_duration(Settings &settings, const Option &, std::string_view value) {
  return read_milliseconds(value, settings.*kMember);
}

template <auto kMember>
std::string read_size(Settings &settings, const Option &, std::string_view value) {
  std::variant<Size, std::string> size = parse_size(value);
  if (std::string *wrong = std::get_if<std::string>(&size)) {
    return *wrong;
  }
  settings.*kMember = std::get<Size>(size);
  return {};
}

// For sizes that do not belong to a device, and so cannot be a share of one.
template <std::optional<Size> Settings::*kMember>
std::string read_bytes(Settings &settings, const Option &, std::string_view value) {
  std::variant<Size, std::string> size = parse_whole_size(value);
  if (std::string *wrong = std::get_if<std::string>(&size)) {
    return *wrong;
  }
  settings.*kMember = std::get<Size>(size);
  return {};
}

template <auto kMember>
std::string read_size_or_zero(Settings &settings, const Option &option, std::string_view value) {
  if (value == "0") {
    settings.*kMember = Size::of_bytes(0);
    return {};
  }
  return read_size<kMember>(settings, option, value);
}

}  // namespace ration::config
