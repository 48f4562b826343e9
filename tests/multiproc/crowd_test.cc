// As many processes as a group can have.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <vector>

#include "catch.h"
#include "groups.h"
#include "ledger/shared_layout.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

constexpr std::uint32_t kProcesses = 8;  // each joins as often as many processes would
constexpr std::uint32_t kEach = shared::kSlots / kProcesses;
constexpr std::uint64_t kLimit = shared::kSlots * kMiB;
// A search for dead members checks at least this many slots, however little time it has.
constexpr std::uint32_t kLeastSeen = 16;

struct Table {
  Barrier joined;
  Gate over;
};

void join_many(Table &table, const std::string &folder) {
  std::vector<std::unique_ptr<Membership>> members;
  for (std::uint32_t i = 0; i < kEach; ++i) {
    members.push_back(join(folder));
    expect(members.back()->device(kDevice0, 0) == 0, "the device is missing");
    expect(granted(members.back()->reserve(0, kMiB, false)), "refused what fits");
  }
  members.front()->state_limit(0, kLimit);
  table.joined.meet();
  wait_while(table.over, 0);
}

std::vector<Child> crowd(Table &table, const std::string &folder) {
  table.joined.count = kProcesses + 1;
  std::vector<Child> children;
  for (std::uint32_t i = 0; i < kProcesses; ++i) {
    children.emplace_back([&] { join_many(table, folder); });
  }
  table.joined.meet();
  return children;
}

// ThreadSanitizer tracks each page of each mapping: minutes, and smaller groups show the same.
bool under_thread_sanitizer() {
#if defined(__SANITIZE_THREAD__)
  std::printf("skipped: 4,096 mappings are too many for ThreadSanitizer\n");
  return true;
#else
  return false;
#endif
}

}  // namespace

TEST_CASE("a group takes 4,096 processes, refuses the next one with a message, and reuses the slots of dead members") {
  if (under_thread_sanitizer()) {
    return;
  }
  const Folder folder;
  Shared<Table> table;
  std::vector<Child> children = crowd(*table, folder.path());
  std::string problem;
  CHECK(Membership::join(folder.path(), GroupKind::kNamed, "g", this_process(), problem) == nullptr);
  CHECK(problem.find("it already has 4096 processes") != std::string::npos);
  std::vector<Group> groups = read_groups(folder.path(), problem);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].members.size() == shared::kSlots);
  CHECK(groups[0].devices.at(0).reserved == kLimit);
  CHECK(groups[0].devices.at(0).limit == kLimit);

  children[3].kill();
  {
    const std::unique_ptr<Membership> member = join(folder.path());
    REQUIRE(member->device(kDevice0, 0) == 0);
    std::vector<std::uint64_t> refused_ns;
    for (int i = 0; i < 20; ++i) {  // each searches some slots for dead members, as far as its time allows
      const std::uint64_t begin = now_ns();
      CHECK_FALSE(granted(member->reserve(0, kLimit, true)));
      refused_ns.push_back(now_ns() - begin);
    }
    std::sort(refused_ns.begin(), refused_ns.end());
    std::printf("a refusal among %u members: median %llu us, longest %llu us\n", shared::kSlots,
                static_cast<unsigned long long>(refused_ns[refused_ns.size() / 2] / 1000),
                static_cast<unsigned long long>(refused_ns.back() / 1000));
    bool had = false;
    for (std::uint32_t looks = 0; looks <= shared::kSlots / kLeastSeen && !had; ++looks) {
      had = granted(member->reserve(0, kEach * kMiB, true));
    }
    CHECK(had);
    CHECK(member->total(0) == kLimit);
  }
  open(table->over, 1);
  for (std::size_t i = 0; i < children.size(); ++i) {
    CHECK((i == 3 || children[i].ended() == 0));
  }
  const std::unique_ptr<Membership> last = join(folder.path());
  REQUIRE(last->device(kDevice0, 0) == 0);
  while (read_groups(folder.path(), problem).at(0).members.size() > 1) {
  }
  CHECK(last->total(0) == 0);
}

TEST_CASE("memory of 1,023 members that were killed at once is reclaimed at the next requests") {
  const Folder folder;
  Shared<Table> table;
  const std::unique_ptr<Membership> survivor = join(folder.path());
  REQUIRE(survivor->device(kDevice0, 0) == 0);
  table->joined.count = 2;
  Child many([&] {
    std::vector<std::unique_ptr<Membership>> members;
    for (std::uint32_t i = 0; i < 1023; ++i) {
      members.push_back(join(folder.path()));
      expect(members.back()->device(kDevice0, 0) == 0, "the device is missing");
      members.back()->charge(0, kMiB);
    }
    for (const std::unique_ptr<Membership> &member : members) {
      member->state_limit(0, 1023 * kMiB);
    }
    table->joined.meet();
    wait_while(table->over, 0);
  });
  table->joined.meet();
  survivor->state_limit(0, 1023 * kMiB);
  many.kill();
  constexpr std::uint32_t kMost = shared::kSlots / kLeastSeen;
  std::uint32_t asked = 1;
  const std::uint64_t begin = now_ns();
  while (!granted(survivor->reserve(0, 1023 * kMiB, true)) && asked <= kMost) {
    ++asked;
  }
  std::printf("1,023 dead given back in %llu us, asked %u times\n",
              static_cast<unsigned long long>((now_ns() - begin) / 1000), asked);
  CHECK(asked <= kMost);
}
