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

constexpr std::size_t kLongestName = 64;  // of ours; the cost of comparing is quadratic in the length

// Levenshtein distance, one row at a time; to exchange two neighbours is one edit, too.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
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

// The entry of the column `names` that is nearest to `name`.
std::string_view nearest(std::string_view name, std::string_view Option::*names, Scope widest = Scope::kVariable) {
  const std::string_view head = name.substr(0, kLongestName);
  std::string_view found;
  std::size_t fewest = 0;
  for (const Option &option : kOptions) {
    const std::string_view candidate = option.*names;
    if (option.state == State::kInternal || candidate.empty() || option.scope > widest) {
      continue;
    }
    const std::size_t edits = edits_between(head, candidate);
    if (found.empty() || edits < fewest) {
      found = candidate;
      fewest = edits;
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

std::string_view nearest_variable(std::string_view variable) {
  return nearest(variable, &Option::variable);
}

std::string_view nearest_key(std::string_view key) {
  return nearest(key, &Option::key, Scope::kAnywhere);
}

std::string_view near_word(std::string_view word, std::span<const std::string_view> words) {
  const std::string_view head = word.substr(0, kLongestName);
  const std::size_t letters = head.size() - std::min(head.find_first_not_of('-'), head.size());
  if (letters < 2) {
    return {};  // one edit leads to any other letter
  }
  std::string_view found;
  std::size_t fewest = 1 + letters / 6;
  for (const std::string_view each : words) {
    if (const std::size_t edits = edits_between(head, each); edits <= fewest && (found.empty() || edits < fewest)) {
      found = each;
      fewest = edits;
    }
  }
  return found;
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
