#include "config/foreign_words.h"

#include <algorithm>

#include "config/wording.h"

namespace ration::config {

ForeignWords::ForeignWords(const char *const *environment, bool limit_malformed, Settings &settings,
                           std::vector<Problem> &problems)
    : environment_(environment),
      limits_hold_(limit_malformed || settings.origin_of("limit") == nullptr),
      settings_(settings),
      problems_(problems) {}

std::optional<std::string_view> ForeignWords::value_of(std::string_view variable) const {
  for (const char *const *entry = environment_; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.size() > variable.size() + 1 && text.substr(0, variable.size()) == variable &&
        text[variable.size()] == '=') {
      return text.substr(variable.size() + 1);
    }
  }
  return std::nullopt;
}

bool ForeignWords::is_settled(std::string_view variable) const {
  return std::any_of(settings_.foreign.begin(), settings_.foreign.end(),
                     [&](const auto &each) { return each.variable == variable; });
}

void ForeignWords::settle(std::string_view variable, std::string_view value, Standing standing, std::string reason) {
  settings_.foreign.push_back({std::string(variable), std::string(value), standing, std::move(reason)});
}

void ForeignWords::ignore(std::string_view variable, std::string_view value, std::string why, bool tell) {
  if (tell) {
    problems_.push_back(problem_at(variable, shown(variable) + "=" + shown(value), why, "; it is ignored", false));
  }
  settle(variable, value, Standing::kIgnored, std::move(why));
}

bool ForeignWords::takes(std::string_view key, std::string text, std::string_view variable, std::string_view value) {
  if (const Origin *stronger = settings_.origin_of(key)) {
    settle(variable, value, Standing::kOverridden, stronger->written() + " stands above it");
    return false;
  }
  std::string reason = std::string(key) + " = " + text;
  record(key, std::move(text), variable, value);
  settle(variable, value, Standing::kHonoured, std::move(reason));
  return true;
}

void ForeignWords::record(std::string_view key, std::string text, std::string_view variable, std::string_view value) {
  settings_.origins.push_back(
      {std::string(key), std::move(text), Source::kForeign, std::string(variable) + "=" + std::string(value), false});
}

bool ForeignWords::limit_everywhere(std::string_view variable, std::string_view value, const Size *size,
                                    const std::string &wrong) {
  LimitMap items;
  if (size != nullptr) {
    items.emplace_back().size = *size;
  }
  return limit(variable, value, std::move(items), wrong);
}

bool ForeignWords::limit(std::string_view variable, std::string_view value, LimitMap items, const std::string &wrong) {
  if (!limits_hold_) {
    settle(variable, value, Standing::kOverridden, settings_.origin_of("limit")->written() + " stands above it");
    return false;
  }
  const std::string stated = shown(variable) + "=" + shown(value);
  std::string text;
  for (LimitItem &item : items) {
    item.stated = stated;
    text += text.empty() ? "" : ",";
    text += (item.name.empty() ? "" : item.name + "=") + item.size.text();
  }
  settings_.limit.insert(settings_.limit.end(), items.begin(), items.end());
  record("limit", wrong.empty() ? text : std::string(value), variable, value);
  if (wrong.empty()) {
    settle(variable, value, Standing::kHonoured, "limit = " + text);
    return true;
  }
  settings_.limit_in_doubt = true;
  problems_.push_back(problem_at(variable, stated, wrong, kStrictestHolds, false));
  settle(variable, value, Standing::kRefused, wrong);
  return false;
}

}  // namespace ration::config
