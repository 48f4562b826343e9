// The one object that joins everything, built at the first CUDA call and leaked.
// Layer: runtime (may include policy, config): settings become options here and nowhere else.
// Threads: get() from any; threads that arrive during first use wait. Called from: first use, fork child, exit.
#pragma once

#include "policy/calls/policy.h"

namespace ration::runtime {

class Runtime {
 public:
  // The process's runtime, built if need be. nullptr: it could not be built; the caller fails closed. A forked child
  // gets one of its own: nothing of the parent's is the child's to free or to count.
  static Runtime *get() noexcept;
  // The same while it was not built yet: nullptr.
  static Runtime *existing() noexcept;

  policy::Policy &policy() { return policy_; }

 private:
  friend struct Builder;
  Runtime(const policy::Options &options, policy::LimitSource &limits, events::JournalOptions journal,
          std::string &problem)
      : policy_(options, limits, std::move(journal), problem) {}

  policy::Policy policy_;
};

// Called once by the core's start: a counter that `end` reports and a way to tell the program's calls apart.
struct Reports {
  const std::uint64_t *unknown_versions = nullptr;
  events::Via (*via_of)(const void *caller) = nullptr;
};
void set_reports(const Reports &reports);

}  // namespace ration::runtime
