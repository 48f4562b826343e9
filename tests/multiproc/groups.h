// Joins groups in a test's folder, and checks them.
#pragma once

#include <memory>
#include <string>

#include "ledger/membership.h"
#include "processes.h"

namespace multiproc {

namespace ledger = ration::ledger;

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr char kDevice0[] = "GPU-00000000-0000-0000-0000-000000000001";
inline constexpr char kDevice1[] = "GPU-00000000-0000-0000-0000-000000000002";

// Joins a group; ends the process with a message on failure.
inline std::unique_ptr<ledger::Membership> join(const std::string &folder, const std::string &group = "g") {
  std::string problem;
  auto member = ledger::Membership::join(folder, ledger::GroupKind::kNamed, group, ledger::this_process(), problem);
  if (member == nullptr) {
    fail("cannot join: " + problem);
  }
  return member;
}

inline bool granted(ledger::ReserveOutcome outcome) {
  return outcome == ledger::ReserveOutcome::granted;
}

// Joins a group, states `limit` for its first device and reserves `bytes` there.
inline std::unique_ptr<ledger::Membership> holder(const std::string &folder, std::uint64_t limit, std::uint64_t bytes) {
  std::unique_ptr<ledger::Membership> member = join(folder);
  expect(member->device(kDevice0, 0) == 0, "another device is in place 0");
  member->state_limit(0, limit);
  expect(granted(member->reserve(0, bytes, true)), "refused what fits");
  return member;
}

}  // namespace multiproc
