// The variables of the field that a process has, and how one of them becomes a setting. Layer: config, for foreign.cc
// and its parts. Threads: one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "config/settings.h"

namespace ration::config {

class ForeignWords {
 public:
  ForeignWords(const char *const *environment, bool limit_malformed, Settings &settings,
               std::vector<Problem> &problems);

  [[nodiscard]] const char *const *environment() const { return environment_; }
  // An empty one is unset, as JAX has it, and as ours are.
  [[nodiscard]] std::optional<std::string_view> value_of(std::string_view variable) const;
  Settings &settings() { return settings_; }
  [[nodiscard]] bool is_said(std::string_view key) const { return settings_.origin_of(key) != nullptr; }

  [[nodiscard]] bool is_settled(std::string_view variable) const;

  // What became of one.
  void settle(std::string_view variable, std::string_view value, Standing standing, std::string reason);
  // `tell` where whoever set it would otherwise believe that it holds.
  void ignore(std::string_view variable, std::string_view value, std::string why, bool tell);
  // Whether `key` is this variable's to say: nothing stronger has said it. Settles it either way; `text` is the value
  // in our own words.
  bool takes(std::string_view key, std::string text, std::string_view variable, std::string_view value);
  // That `key` comes from there, beside what else the variable says.
  void record(std::string_view key, std::string text, std::string_view variable, std::string_view value);
  // All limits of the field hold together, and so the smallest. Settles it; true where it holds as it is written.
  bool limit(std::string_view variable, std::string_view value, LimitMap items, const std::string &wrong);
  // Of every device; nullptr where it cannot be read.
  bool limit_everywhere(std::string_view variable, std::string_view value, const Size *size, const std::string &wrong);

 private:
  const char *const *environment_;
  bool limits_hold_;  // nothing of ours says the limit, or not so that it can be read
  Settings &settings_;
  std::vector<Problem> &problems_;
};

// XLA_* and TF_*.
void hear_frameworks(ForeignWords &words);
// GPU_MEMORY_LIMIT, HAMi's and MPS's.
void hear_limits(ForeignWords &words);
// What is known and not honoured, but for what is left to a framework. The last one to be called.
void hear_others(ForeignWords &words);

}  // namespace ration::config
