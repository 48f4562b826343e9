#include "config/options.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "config/values/option_parsers.h"

namespace ration::config {

namespace {

constexpr Option kOptions[] = {
#define RATION_OPTION(key, variable, reader, values, fallback, flag, effect, state, scope, help) \
  {#key, variable, values, fallback, flag, help, Effect::effect, State::state, Scope::scope, reader},
#include "config/options.inc"
#undef RATION_OPTION
};

// The strictest reading would have to hold for a limit that is accepted before it is built; there is none.
static_assert(std::none_of(std::begin(kOptions), std::end(kOptions), [](const Option &option) {
  return option.state == State::kAccepted && option.effect != Effect::kComfort;
}));

constexpr std::string_view kVariablePrefix = "RATION_";
constexpr std::size_t kShortestBeginning = 3;
constexpr std::size_t kLongestName = 64;  // of ours; the cost of comparing is quadratic in the length

// Levenshtein distance, one row at a time; two neighbours that are exchanged are one edit.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

// The words of the column `names` that a user may write.
std::vector<std::string_view> words_of(std::string_view Option::*names, Scope widest) {
  std::vector<std::string_view> words;
  for (const Option &option : kOptions) {
    if (option.state != State::kInternal && !(option.*names).empty() && option.scope <= widest) {
      words.push_back(option.*names);
    }
  }
  return words;
}

std::string upper(std::string_view text) {
  std::string out(text.substr(0, kLongestName));
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char each) { return each >= 'a' && each <= 'z' ? static_cast<char>(each - 'a' + 'A') : each; });
  return out;
}

// Near, too, is a name that is the beginning of the other.
std::string_view near_name(std::string_view name, const std::vector<std::string_view> &words) {
  std::string_view found = near_word(name, words);
  if (!found.empty()) {
    return found;
  }
  for (const std::string_view each : words) {
    const std::size_t shorter = std::min(name.size(), each.size());
    if (shorter >= kShortestBeginning && name.substr(0, shorter) == each.substr(0, shorter) &&
        each.size() > found.size()) {
      found = each;
    }
  }
  return found;
}

}  // namespace

std::span<const Option> options() {
  return kOptions;
}

const Option *option_of_key(std::string_view key) {
  const auto *found =
      std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option &o) { return o.key == key; });
  return found == std::end(kOptions) ? nullptr : found;
}

const Option *option_of_variable(std::string_view variable) {
  const auto *found =
      std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option &o) { return o.variable == variable; });
  return found == std::end(kOptions) ? nullptr : found;
}

std::string_view near_variable(std::string_view variable) {
  // What all have in common makes no name likelier.
  std::vector<std::string_view> words;
  for (const std::string_view each : words_of(&Option::variable, Scope::kVariable)) {
    words.push_back(each.substr(kVariablePrefix.size()));
  }
  const std::string_view near = near_name(upper(variable.substr(kVariablePrefix.size())), words);
  const auto *found = std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option &option) {
    return !near.empty() && option.variable.size() == kVariablePrefix.size() + near.size() &&
           option.variable.substr(kVariablePrefix.size()) == near;
  });
  return found == std::end(kOptions) ? std::string_view() : found->variable;
}

std::string_view near_key(std::string_view key) {
  return near_name(key, words_of(&Option::key, Scope::kAnywhere));
}

std::string_view near_word(std::string_view word, std::span<const std::string_view> words) {
  const std::string_view head = word.substr(0, kLongestName);
  std::string_view found;
  std::size_t fewest = 1 + head.size() / 6;
  for (const std::string_view each : words) {
    if (const std::size_t edits = edits_between(head, each); edits <= fewest && (found.empty() || edits < fewest)) {
      found = each;
      fewest = edits;
    }
  }
  return found;
}

std::string and_nearest(std::string_view near, std::string_view list) {
  return near.empty() ? " (" + std::string(list) + " lists them)" : "; the nearest is " + std::string(near);
}

bool has_no_effect(const Option &option, std::string_view value) {
  return option.state == State::kAccepted && value != option.fallback.substr(0, option.fallback.find(' '));
}

// A POWER is a size that is a power of two.
bool takes_size(const Option &option) {
  const auto has = [&](const char *word) { return option.values.find(word) != std::string_view::npos; };
  return has("SIZE") || has("POWER") || has("BYTES");
}

bool takes_devices(const Option &option) {
  return option.values.find("DEVICE=SIZE") != std::string_view::npos && option.scope == Scope::kAnywhere;
}

}  // namespace ration::config
