// Used by the tests of ledgers that cannot be used.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "groups.h"

namespace multiproc {

using namespace ration::ledger;

inline constexpr uid_t kOtherUser = 65534;

inline std::unique_ptr<Membership> try_join(const std::string &folder, std::string &problem) {
  return Membership::join(folder, GroupKind::kNamed, "g", this_process(), problem);
}

// Returns the reason why joining fails; fails the test if joining succeeds.
inline std::string join_problem(const std::string &folder) {
  std::string problem;
  CHECK(try_join(folder, problem) == nullptr);
  CHECK_FALSE(problem.empty());
  return problem;
}

inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

// The problem that `ration ps` would report for the group.
inline std::string reported_problem(const std::string &folder) {
  std::string problem;
  const std::vector<Group> groups = read_groups(folder, problem);
  return groups.empty() ? problem : groups[0].problem;
}

// Makes a group's file with one dead member that held memory.
inline std::string make_file(const std::string &folder) {
  Child member([&] {
    const std::unique_ptr<Membership> joined = join(folder);
    const int device = joined->device(kDevice0, 0);
    joined->state_limit(device, 100 * kMiB);
    expect(granted(joined->reserve(device, 60 * kMiB, true)), "refused what fits");
  });
  REQUIRE(member.ended() == 0);
  return folder + "/group-g";
}

// Call this in a child, because the effect cannot be undone.
inline void become_other_user() {
  expect(setgid(kOtherUser) == 0 && setuid(kOtherUser) == 0, "cannot become another user");
}

inline bool is_root() {
  if (geteuid() == 0) {
    return true;
  }
  std::printf("skipped: not root\n");
  return false;
}

}  // namespace multiproc
