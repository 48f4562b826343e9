#include "config/options.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "config/values/ascii.h"
#include "config/values/option_parsers.h"

namespace ration::config {

namespace {

constexpr Option kOptions[] = {
#define RATION_OPTION(key, variable, reader, values, fallback, flag, effect, scope, help) \
  {#key, variable, values, fallback, flag, help, Effect::effect, Scope::scope, reader},
#include "config/options.inc"
#undef RATION_OPTION
};

constexpr std::size_t kLongestName = 64;  // of an option or verb; the cost of comparing is quadratic in the length

// Levenshtein distance in which swapping two adjacent characters is one edit; computed row by row.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = std::move(last);
    last = row;
  }
  return last[b.size()];
}

constexpr std::size_t kEditsOfPart = 2;  // what a match counts if one word is a part of the other
constexpr std::size_t kLeastOfPart = 3;  // characters that such a part must have
constexpr std::size_t kLeastOfBeginning = 2;
constexpr std::string_view kSeparators = "_-";
constexpr std::string_view kVariablePrefix = "RATION_";

std::string_view without_dashes(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

bool is_beginning(std::string_view word, std::string_view name) {
  return word.size() >= kLeastOfBeginning && word.size() < name.size() && name.starts_with(word);
}

// True if one is the beginning of the other (prealloc), or if the name is at either end of the word (memory_limit).
bool is_part(std::string_view word, std::string_view name) {
  const auto is_separator = [&](std::size_t at) { return kSeparators.find(word[at]) != std::string_view::npos; };
  if (std::min(word.size(), name.size()) < kLeastOfPart || word.size() == name.size()) {
    return false;
  }
  if (word.size() < name.size()) {
    return name.starts_with(word);
  }
  return (word.starts_with(name) && is_separator(name.size())) ||
         (word.ends_with(name) && is_separator(word.size() - name.size() - 1));
}

// Compares both names without the prefix, which only variables have.
std::string_view near_option(std::string_view name, Scope widest, std::vector<std::string_view> known) {
  for (const Option &option : kOptions) {
    if (option.scope <= widest) {
      known.push_back(option.key);
    }
  }
  return near_word(name.substr(name.starts_with(kVariablePrefix) ? kVariablePrefix.size() : 0), known);
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
  const std::string_view key = near_option(variable, Scope::kVariable, {});
  return key.empty() ? key : option_of_key(key)->variable;
}

std::string_view near_key(std::string_view key) {
  return near_option(key, Scope::kAnywhere, {"locked", "rules"});
}

std::string_view near_word(std::string_view word, std::span<const std::string_view> words) {
  const std::string head = lower(without_dashes(word.substr(0, kLongestName)));
  const std::size_t most = head.size() < 2 ? 0 : 1 + head.size() / 5;
  const bool is_unclear = head.size() < kLeastOfPart && std::ranges::count_if(words, [&](std::string_view each) {
                                                          return is_beginning(head, lower(without_dashes(each)));
                                                        }) > 1;
  std::string_view found;
  std::size_t fewest = 0;
  for (const std::string_view each : words) {
    const std::string name = lower(without_dashes(each));
    const bool begins = !is_unclear && is_beginning(head, name);  // a name that only has to be completed wins
    const bool has_part = begins || is_part(head, name);
    const std::size_t edits = begins     ? 0
                              : has_part ? std::min(edits_between(head, name), kEditsOfPart)
                                         : edits_between(head, name);
    if ((has_part || edits <= most) && (found.empty() || edits < fewest)) {
      found = each;
      fewest = edits;
    }
  }
  return found;
}

bool takes_size(const Option &option) {
  const auto has = [&](const char *word) { return option.values.find(word) != std::string_view::npos; };
  return has("SIZE") || has("BYTES");
}

bool takes_devices(const Option &option) {
  return option.values.find("DEVICE=SIZE") != std::string_view::npos && option.scope == Scope::kAnywhere;
}

std::string near_or_list(std::string_view near, std::string_view help) {
  return near.empty() ? " (`" + std::string(help) + "` lists them)" : "; the nearest is " + std::string(near);
}

}  // namespace ration::config
