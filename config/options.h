// The table of all settings, from options.inc, and the search for the nearest known name.
// Layer: config. Threads: a constant table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/settings.h"

namespace ration::config {

// If the value of a kLimits option is malformed or empty, the strictest reading applies. If the value of a kTightens
// option is malformed, the strictest reading applies; if it is empty, the option is unset.
enum class Effect { kComfort, kTightens, kLimits };
enum class Scope { kAnywhere, kSystemFile, kVariable, kInternal };

struct Option {
  std::string_view key, variable;
  std::string_view values, fallback;
  std::string_view flag;  // empty: there is only the environment variable
  std::string_view help;
  Effect effect;
  Scope scope;
  // Parses `value` into the option's member of Settings. Returns the error, or an empty string.
  std::string (*read)(Settings &, const Option &, std::string_view value);
};

std::span<const Option> options();

// Return nullptr if no option has this key or variable.
const Option *option_of_key(std::string_view key);
const Option *option_of_variable(std::string_view variable);

// The known name that was probably meant, found with near_word(). Empty if no name is near.
std::string_view near_variable(std::string_view variable);
std::string_view near_key(std::string_view key);  // a key in a file

// The nearest of `words`, ignoring case: a few edits turn it into `word`, or one of the two contains the other.
// Settings, options and verbs all use this function. Empty if no word is near.
std::string_view near_word(std::string_view word, std::span<const std::string_view> words);
// The text after an unknown name in a message: "; the nearest is NEAR", or " (`HELP` lists them)" if `near` is empty.
std::string near_or_list(std::string_view near, std::string_view help);

// takes_size(): the option's value is a size. takes_devices(): the size may also differ between devices.
bool takes_size(const Option &option);
bool takes_devices(const Option &option);

}  // namespace ration::config
