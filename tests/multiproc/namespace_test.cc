// Process IDs that name different processes in other namespaces and at other times.
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "catch.h"
#include "groups.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

constexpr std::uint64_t kLimit = 100 * kMiB;

void skip(const char *what) {
  std::printf("skipped: the kernel refuses %s: %s\n", what, std::strerror(errno));
}

bool has_pid_namespaces() {
  Child attempt([] {
    if (unshare(CLONE_NEWPID) != 0) {
      _exit(1);
    }
  });
  if (attempt.ended() == 0) {
    return true;
  }
  errno = EPERM;
  skip("PID namespaces");
  return false;
}

struct Init {
  std::atomic<pid_t> process;  // as numbered in its parent's namespace
  Gate ready;
  Gate go_on;
};

// Runs `work` in the first process of a PID namespace, where its process ID is 1.
Child in_namespace(Init &init, const std::function<void()> &work) {
  return Child([&init, work] {
    expect(unshare(CLONE_NEWPID) == 0, "no PID namespace");
    Child first([&] {
      expect(getpid() == 1, "not the first of its namespace");
      work();
    });
    init.process.store(first.process());
    _exit(first.ended());
  });
}

}  // namespace

TEST_CASE("members of two PID namespaces see each other live, and a killed namespace leaves nothing") {
  if (!has_pid_namespaces()) {
    return;
  }
  const Folder folder;
  Shared<Init> one, other;
  Child first = in_namespace(*one, [&] {
    const std::unique_ptr<Membership> member = holder(folder.path(), kLimit, 60 * kMiB);
    open(one->ready, 1);
    wait_while(one->go_on, 0);
    expect(member->total(0) == 100 * kMiB, "the other's bytes are not counted");
    expect(!granted(member->reserve(0, 1, true)), "the other's bytes were given away");
    open(one->ready, 2);
    wait_while(one->go_on, 1);
  });
  wait_while(one->ready, 0);
  Child second = in_namespace(*other, [&] {
    const std::unique_ptr<Membership> member = holder(folder.path(), kLimit, 40 * kMiB);
    expect(!granted(member->reserve(0, 1, true)), "the other's bytes were given away");
    expect(member->holders(0).size() == 2, "a holder is missing");
    open(other->ready, 1);
    wait_while(other->go_on, 0);
    expect(granted(member->reserve(0, 60 * kMiB, true)), "what a killed namespace held is lost");
    expect(member->total(0) == 100 * kMiB, "the total is not exact");
  });
  wait_while(other->ready, 0);
  open(one->go_on, 1);
  wait_while(one->ready, 1);
  std::string problem;
  const std::vector<Group> groups = read_groups(folder.path(), problem);
  REQUIRE(groups.size() == 1);
  REQUIRE(groups[0].members.size() == 2);
  CHECK(groups[0].members[0].pid == 1);
  CHECK(groups[0].members[1].pid == 1);
  CHECK(groups[0].members[0].pid_namespace != groups[0].members[1].pid_namespace);
  CHECK(groups[0].members[0].identity != groups[0].members[1].identity);

  kill(one->process.load(), SIGKILL);
  CHECK(first.ended() == 128 + SIGKILL);
  open(other->go_on, 1);
  CHECK(second.ended() == 0);
}

TEST_CASE("a forked child is refused by its parent's membership though both have the same process ID") {
  if (!has_pid_namespaces()) {
    return;
  }
  const Folder folder;
  Shared<Init> outer;
  Child parent = in_namespace(*outer, [&] {
    const std::unique_ptr<Membership> member = holder(folder.path(), kLimit, 60 * kMiB);
    Shared<Init> inner;
    Child child = in_namespace(*inner, [&] {
      expect(!granted(member->reserve(0, 1, true)), "a child was granted by its parent's membership");
      expect(member->total(0) == 0, "a child saw totals");
      const std::unique_ptr<Membership> own = holder(folder.path(), kLimit, 40 * kMiB);
      expect(!granted(member->reserve(0, 1, true)), "a child was granted by its parent's membership");
    });
    expect(child.ended() == 0, "the child failed");
    expect(granted(member->reserve(0, 1, true)), "refused what fits");
  });
  CHECK(parent.ended() == 0);
}

TEST_CASE("a dead member is found even if its process ID is in use again") {
  const Folder folder;
  const std::unique_ptr<Membership> survivor = holder(folder.path(), kLimit, kMiB);
  Child member([&] {
    const std::unique_ptr<Membership> held = holder(folder.path(), kLimit, 60 * kMiB);
    raise(SIGKILL);
  });
  const pid_t process = member.process();
  REQUIRE(member.ended() == 128 + SIGKILL);
  struct clone_args arguments {};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uint64_t>(&process);
  arguments.set_tid_size = 1;
  const long made = syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (made == 0) {
    for (;;) {
      pause();
    }
  }
  if (made < 0) {
    skip("a process ID of one's choice");
    return;
  }
  const Child same(process);
  REQUIRE(made == process);
  std::string problem;
  REQUIRE(kill(process, 0) == 0);
  CHECK(granted(survivor->reserve(0, 99 * kMiB, true)));
  CHECK(read_groups(folder.path(), problem).at(0).members.size() == 1);
}
