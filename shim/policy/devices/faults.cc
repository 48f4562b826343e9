#include "policy/devices/faults.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>

namespace ration::policy {
namespace {

// splitmix64: makes the same choices for the same seed, however threads interleave.
double fraction(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t mixed = seed + number * 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  mixed ^= mixed >> 31U;
  constexpr double kTwoTo53 = 9007199254740992.0;
  return static_cast<double>(mixed >> 11U) / kTwoTo53;
}

bool picks(const FaultRule &rule, std::uint64_t number) {
  if (rule.nth != 0) {
    return number == rule.nth;
  }
  return rule.every != 0 ? number % rule.every == 0 : fraction(rule.seed, number) < rule.probability;
}

}  // namespace

Faults::Faults(std::vector<FaultRule> rules) {
  for (FaultRule &rule : rules) {
    rules_.emplace_back().rule = std::move(rule);
  }
}

bool Faults::looks_at(const FaultRule &rule, std::uint64_t bytes, const void *caller) const noexcept {
  if (bytes <= rule.above_bytes || (rule.after_ns != 0 && now_ns() - start_ns_ < rule.after_ns)) {
    return false;
  }
  if (rule.library.empty()) {
    return true;
  }
  Dl_info info{};
  if (caller == nullptr || dladdr(caller, &info) == 0 || info.dli_fname == nullptr) {
    return false;
  }
  const char *slash = std::strrchr(info.dli_fname, '/');
  return std::strstr(slash != nullptr ? slash + 1 : info.dli_fname, rule.library.c_str()) != nullptr;
}

bool Faults::refuses(std::uint64_t bytes, const void *caller) noexcept {
  bool refused = false;
  for (Counted &each : rules_) {
    if (looks_at(each.rule, bytes, caller)) {
      refused |= picks(each.rule, each.seen.fetch_add(1, std::memory_order_relaxed) + 1);
    }
  }
  return refused;
}

}  // namespace ration::policy
