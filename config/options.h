// The table of every setting, from options.inc, and the search for the name that somebody meant.
// Layer: config. Threads: a constant table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/settings.h"

namespace ration::config {

// kLimits: malformed or empty, the strictest reading holds. kTightens: the same, but empty is unset.
enum class Effect { kComfort, kTightens, kLimits };
enum class State { kBuilt, kAccepted, kInternal };
enum class Scope { kAnywhere, kVariable };

struct Option {
  std::string_view key, variable;
  std::string_view values, fallback;
  std::string_view flag;  // empty: environment only
  std::string_view help;
  Effect effect;
  State state;
  Scope scope;
  // Puts `value` into its member; returns what is wrong with it, empty when nothing is.
  std::string (*read)(Settings &, const Option &, std::string_view value);
};

std::span<const Option> options();

// nullptr where no option has this key / this variable.
const Option *option_of_key(std::string_view key);
const Option *option_of_variable(std::string_view variable);

// The variable that is the fewest edits away from `variable`; the flag that is nearest to `flag`.
std::string_view nearest_variable(std::string_view variable);
std::string_view nearest_flag(std::string_view flag);
// The key of a file that is.
std::string_view nearest_key(std::string_view key);

// Whether `value`, which the option accepts, changes nothing because its feature is not built yet.
bool has_no_effect(const Option &option, std::string_view value);

// Whether such a value is one or more sizes, and may be said for each device.
bool takes_size(const Option &option);
bool takes_devices(const Option &option);

}  // namespace ration::config
