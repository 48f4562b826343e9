// A process dies, or is stopped, at each step of the ledger: the others go on, and the totals are exact.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <set>

#include "catch.h"
#include "groups.h"
#include "ledger/kill_points.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

constexpr std::uint64_t kLimit = 1000 * kMiB;
constexpr std::uint64_t kHeld[] = {100 * kMiB, 30 * kMiB};
constexpr int kMostVisits = 64;

struct Victim {
  KillPoint point;
  int visit;
  int signal;
};
Victim victim;
int visits;

void reached(KillPoint point) {
  if (point == victim.point && ++visits == victim.visit) {
    raise(victim.signal);
  }
}

// A member that holds memory on both devices and publishes figures.
class Member {
 public:
  explicit Member(const std::string &folder) : member_(join(folder)) {
    for (const char *uuid : {kDevice0, kDevice1}) {
      expect(member_->device(uuid, 0) == (uuid == kDevice0 ? 0 : 1), "the devices have other indices");
    }
  }
  Membership *operator->() const { return member_.get(); }

 private:
  std::unique_ptr<Membership> member_;
};

// Runs every kind of step, in a group that may not exist yet.
void live(const std::string &folder) {
  std::string problem;
  const Member member(folder);
  for (const int device : {0, 1}) {
    member->state_limit(device, kLimit - kMiB);
    expect(granted(member->reserve(device, 10 * kMiB, true)), "refused what fits");
    member->charge(device, kMiB);
    member->release(device, 4 * kMiB);
    expect(granted(member->guarantee(device, 8 * kMiB, true)), "a guarantee that fits was refused");
    expect(granted(member->reserve(device, 2 * kMiB, true)), "refused what is guaranteed");
    member->release(device, 2 * kMiB);
    member->publish(device, {6 * kMiB, 1, {}});
    expect(!granted(member->reserve(device, kLimit, true)), "granted what cannot fit");  // searches for dead members
  }
  const Member again(folder);  // takes what dead members left, if any
  expect(granted(again->reserve(0, 2 * kMiB, true)), "refused what fits");
  again->release(0, kMiB);
  (void)read_groups(folder, problem);
}

void look_only(const std::string &folder) {
  std::string problem;
  (void)read_groups(folder, problem);
  expect(problem.empty(), problem.c_str());
}

// Leaves a dead member that held memory and stated the smallest limit.
void leave_one_dead(const std::string &folder) {
  Child dead([&] {
    const Member member(folder);
    member->state_limit(0, kLimit / 4);
    member->charge(0, 50 * kMiB);
    member->charge(1, 60 * kMiB);
    raise(SIGKILL);
  });
  REQUIRE(dead.ended() == 128 + SIGKILL);
}

struct Scenario {
  const char *name;
  bool survivor;  // another member is in the group, and stays
  void (*prepare)(const std::string &folder);
  void (*act)(const std::string &folder);
};

void nothing(const std::string &) {}
void no_folder(const std::string &folder) {
  REQUIRE(rmdir(folder.c_str()) == 0);
}
// All members died; next to the group's file is a temporary one whose maker also died.
void only_dead(const std::string &folder) {
  leave_one_dead(folder);
  Child maker([&] {
    visits = 0;
    victim = {KillPoint::kFileNamed, 1, SIGKILL};
    kill_point_reached = reached;
    (void)join(folder, "other");
  });
  REQUIRE(maker.ended() == 128 + SIGKILL);
}

const Scenario kScenarios[] = {
    {"the first of a group", false, no_folder, live},
    {"beside one who lives and one who died", true, leave_one_dead, live},
    {"looks at a group whose last one died", false, only_dead, look_only},
    {"joins a group whose last one died", false, only_dead, live},
    {"beside one who lives", true, nothing, live},
};

class Survivor {
 public:
  explicit Survivor(const std::string &folder) : member_(folder) {
    for (const int device : {0, 1}) {
      member_->state_limit(device, kLimit);
      REQUIRE(granted(member_->reserve(device, kHeld[device], true)));
    }
  }
  Membership *operator->() const { return member_.operator->(); }

  // All that dead members held is available again, and the totals equal what is held, to the byte.
  void find_all_exact(const std::string &folder) const {
    for (const int device : {0, 1}) {
      const std::uint64_t rest = kLimit - kHeld[device];
      CHECK(granted(member_->reserve(device, rest, true)));
      CHECK(member_->total(device) == kLimit);
      CHECK_FALSE(granted(member_->reserve(device, 1, true)));
      member_->release(device, rest);
      CHECK(member_->total(device) == kHeld[device]);
      CHECK(member_->limit(device) == kLimit);
    }
    const Member newcomer(folder);
    CHECK(granted(newcomer->reserve(0, 1, true)));
    CHECK(newcomer->total(0) == kHeld[0] + 1);
    std::string problem;
    const std::vector<Group> groups = read_groups(folder, problem);
    CHECK(problem.empty());
    REQUIRE(groups.size() == 1);
    CHECK(groups[0].members.size() == 2);
    CHECK(groups[0].devices.at(0).reserved == kHeld[0] + 1);
  }

  // Another process is stopped anywhere: nothing waits for it, and what it has not taken is available.
  void work_beside(const std::string &folder) const {
    for (const int device : {0, 1}) {
      member_->state_limit(device, kLimit);
      CHECK_FALSE(granted(member_->reserve(device, kLimit, true)));  // searches for dead members
      const std::uint64_t rest = member_->available(device);
      CHECK(granted(member_->reserve(device, rest, true)));
      CHECK_FALSE(granted(member_->reserve(device, 1, true)));
      member_->release(device, rest);
    }
    const Member newcomer(folder);
    CHECK(granted(newcomer->reserve(0, 1, true)));
    newcomer->release(0, 1);
    std::string problem;
    const std::vector<Group> groups = read_groups(folder, problem);
    CHECK(problem.empty());
    CHECK(groups.at(0).members.size() >= 2);
  }

 private:
  Member member_;
};

void find_empty(const std::string &folder) {
  std::string problem;
  CHECK(read_groups(folder, problem).empty());
  CHECK(problem.empty());
  CHECK(names_in(folder) == std::vector<std::string>{});
}

Child start(const Scenario &scenario, const std::string &folder, const Victim &chosen) {
  return Child([&] {
    victim = chosen;
    visits = 0;
    kill_point_reached = reached;
    scenario.act(folder);
  });
}

// The group had no members: the next process to join finds it in order.
void find_all_exact(const Scenario &scenario, const std::string &folder, const Survivor *survivor) {
  if (scenario.survivor) {
    survivor->find_all_exact(folder);
  } else {
    const Survivor newcomer(folder);
    newcomer.find_all_exact(folder);
  }
}

bool dies_at(const Scenario &scenario, const Victim &chosen) {
  const Folder folder;
  std::unique_ptr<Survivor> survivor(scenario.survivor ? new Survivor(folder.path()) : nullptr);
  scenario.prepare(folder.path());
  const int status = start(scenario, folder.path(), chosen).ended();
  if (status == 128 + SIGKILL) {
    find_all_exact(scenario, folder.path(), survivor.get());
    survivor.reset();
    find_empty(folder.path());
    return true;
  }
  CHECK(status == 0);
  return false;
}

// A remover that is stopped with all life bytes keeps new members out, because it may remove the file at any time. It
// removes the temporary file first, the group's second.
bool keeps_out(const Scenario &scenario, const Victim &victim) {
  return scenario.act == look_only && victim.point == KillPoint::kRemove && victim.visit == 2;
}

void beside_one_stopped(const Scenario &scenario, const std::string &folder, const Victim &stopped,
                        const Survivor *survivor) {
  if (scenario.survivor) {
    survivor->work_beside(folder);
  } else if (keeps_out(scenario, stopped)) {
    std::string problem;
    CHECK(Membership::join(folder, GroupKind::kNamed, "g", this_process(), problem) == nullptr);
    CHECK(problem.find("or a process that is stopped is removing it") != std::string::npos);
  } else {
    const Survivor newcomer(folder);
    newcomer.work_beside(folder);
  }
}

bool stops_at(const Scenario &scenario, const Victim &chosen, bool goes_on) {
  const Folder folder;
  std::unique_ptr<Survivor> survivor(scenario.survivor ? new Survivor(folder.path()) : nullptr);
  scenario.prepare(folder.path());
  Child child = start(scenario, folder.path(), chosen);
  int status = 0;
  if (!child.stopped(status)) {
    CHECK(status == 0);
    return false;
  }
  beside_one_stopped(scenario, folder.path(), chosen, survivor.get());
  child.send(goes_on ? SIGCONT : SIGKILL);
  CHECK(child.ended() == (goes_on ? 0 : 128 + SIGKILL));
  find_all_exact(scenario, folder.path(), survivor.get());
  survivor.reset();
  find_empty(folder.path());
  return true;
}

template <class At>
std::size_t at_every_point(int most_visits, At &&at_point) {
  std::set<int> covered;
  for (const Scenario &scenario : kScenarios) {
    for (int point = 0; point < static_cast<int>(kKillPointSteps.size()); ++point) {
      for (int visit = 1; visit <= most_visits; ++visit) {
        INFO(scenario.name << ", visit " << visit << " before: " << kKillPointSteps[static_cast<std::size_t>(point)]);
        if (!at_point(scenario, static_cast<KillPoint>(point), visit)) {
          break;
        }
        covered.insert(point);
      }
    }
  }
  std::printf("covered: %zu of %zu\n", covered.size(), kKillPointSteps.size());
  return covered.size();
}

}  // namespace

TEST_CASE("a death at any step leaves the totals exact and all that the process held available") {
  CHECK(at_every_point(kMostVisits, [](const Scenario &scenario, KillPoint point, int visit) {
          return dies_at(scenario, {point, visit, SIGKILL});
        }) == kKillPointSteps.size());
}

TEST_CASE("a process that is stopped at any step blocks no other and continues correctly") {
  CHECK(at_every_point(count_of(2, kMostVisits), [](const Scenario &scenario, KillPoint point, int visit) {
          return stops_at(scenario, {point, visit, SIGSTOP}, true);
        }) == kKillPointSteps.size());
}

TEST_CASE("a process that dies where it was stopped leaves the totals exact, whatever the others did meanwhile") {
  CHECK(at_every_point(count_of(2, kMostVisits), [](const Scenario &scenario, KillPoint point, int visit) {
          return stops_at(scenario, {point, visit, SIGSTOP}, false);
        }) == kKillPointSteps.size());
}
