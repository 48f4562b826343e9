// The table of every setting, from options.inc, and the search for the nearest known name.
// Layer: config. Threads: a constant table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/settings.h"

namespace ration::config {

// kLimits: a malformed or empty value is the strictest reading. kTightens: a malformed one is; an empty one is unset.
enum class Effect { kComfort, kTightens, kLimits };
enum class Scope { kAnywhere, kSystemFile, kVariable, kInternal };

struct Option {
  std::string_view key, variable;
  std::string_view values, fallback;
  std::string_view flag;  // empty: environment only
  std::string_view help;
  Effect effect;
  Scope scope;
  // Parses `value` into its member of Settings. Returns the error; empty: none.
  std::string (*read)(Settings &, const Option &, std::string_view value);
};

std::span<const Option> options();

// nullptr: no option has this key or variable.
const Option *option_of_key(std::string_view key);
const Option *option_of_variable(std::string_view variable);

// The known name that is likely meant, by near_word(). Empty: none is near.
std::string_view near_variable(std::string_view variable);
std::string_view near_key(std::string_view key);  // of a file

// The one notion of what is near, for settings, options and verbs: the nearest word, where few edits lead to it or one
// has the other as its part; in either case. Empty: none is near.
std::string_view near_word(std::string_view word, std::span<const std::string_view> words);
// What follows an unknown name in a message: "; the nearest is NEAR", or where none is near " (`HELP` lists them)".
std::string near_or_list(std::string_view near, std::string_view help);

// Whether a value is a size, and whether it may differ for each device.
bool takes_size(const Option &option);
bool takes_devices(const Option &option);

}  // namespace ration::config
