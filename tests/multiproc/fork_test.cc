// A process that a member forks, spawns or executes is not the member and does not keep its slot alive.
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "catch.h"
#include "groups.h"
#include "ledger/kill_points.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

constexpr std::uint64_t kLimit = 100 * kMiB;
constexpr std::uint64_t kNobodyLetsThemGoNs = 120'000'000'000;

// A program at the other end of two pipes: `cat`.
struct Cat {
  std::array<int, 2> input{}, output{};
  Cat() {
    REQUIRE(pipe2(input.data(), O_CLOEXEC) == 0);
    REQUIRE(pipe2(output.data(), O_CLOEXEC) == 0);
  }
  ~Cat() {
    for (const int end : {input[0], input[1], output[0], output[1]}) {
      close(end);
    }
  }
  Cat(const Cat &) = delete;
  Cat &operator=(const Cat &) = delete;
  // The kernel releases a program's memory shortly after execve has replaced it.
  bool runs() const {
    char byte = 'x';
    return write(input[1], &byte, 1) == 1 && read(output[0], &byte, 1) == 1;
  }
};

// Shared with processes that outlive a member: they end when the test says so, or after two minutes.
struct Lingering {
  Gate made;   // counted by the forking process
  Gate ready;  // counted by the forked processes
  Gate over;

  void fork_one() {
    made.fetch_add(1);
    if (fork() == 0) {
      stay();
    }
  }
  [[noreturn]] void stay() {
    ready.fetch_add(1);
    wake(ready);
    (void)wait_while(over, 0, kNobodyLetsThemGoNs);
    _exit(0);
  }
  // A child first closes what it inherited.
  void wait_until_all_run() {
    for (std::uint32_t running = ready.load(); running != made.load(); running = ready.load()) {
      wait_while(ready, running);
    }
  }
};

class Lingerers {
 public:
  ~Lingerers() { open(shared_->over, 1); }
  Lingering &operator*() const { return *shared_; }
  Lingering *operator->() const { return &*shared_; }

 private:
  Shared<Lingering> shared_;
};

void expect_no_members(const std::string &folder) {
  std::string problem;
  CHECK(read_groups(folder, problem).empty());
  CHECK(problem.empty());
}

void expect_refused(Membership &parents) {
  expect(!granted(parents.reserve(0, 1, true)), "a child was granted by its parent's membership");
  parents.release(0, kMiB);
  parents.charge(0, kMiB);
  parents.state_limit(0, 1);
  parents.show_limit(0, 1);
  parents.publish(0, {1, 1, {}});
  expect(parents.device(kDevice1, 1) == -1, "a child entered a device");
  expect(parents.total(0) == 0 && parents.limit(0) == 0 && parents.available(0) == 0, "a child saw totals");
  expect(parents.holders(0).empty(), "a child saw holders");
  expect(!parents.member_died_within(0, 100), "a child searched for dead members");
}

}  // namespace

TEST_CASE("a forked child is refused by its parent's membership, and joins by itself") {
  const Folder folder;
  Child parent([&] {
    const std::unique_ptr<Membership> member = holder(folder.path(), kLimit, 60 * kMiB);
    Child child([&] {
      expect_refused(*member);
      const std::unique_ptr<Membership> own = holder(folder.path(), kLimit, 40 * kMiB);
      expect(!granted(own->reserve(0, 1, true)), "granted beyond the limit");
      expect_refused(*member);
      Child grandchild([&] {
        expect_refused(*member);
        expect_refused(*own);
      });
      expect(grandchild.ended() == 0, "the grandchild failed");
    });
    expect(child.ended() == 0, "the child failed");
    expect(member->total(0) == 100 * kMiB, "the child's bytes were released without a search");
    expect(granted(member->reserve(0, 40 * kMiB, true)), "the dead child's bytes were not reclaimed");
  });
  CHECK(parent.ended() == 0);
  expect_no_members(folder.path());
}

namespace {

std::size_t open_files_of(const std::string &folder) {
  std::size_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().rfind(folder, 0) == 0 ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("a forked child keeps no file of its parent's groups open, a member one of each") {
  const Folder folder;
  Child parent([&] {
    std::unique_ptr<Membership> member = join(folder.path(), "g"), other = join(folder.path(), "other");
    expect(open_files_of(folder.path()) == 2, "another number of open files");
    Child child([&] {
      expect(open_files_of(folder.path()) == 0, "the child has its parent's files");
      const std::unique_ptr<Membership> own = join(folder.path());
      expect(open_files_of(folder.path()) == 1, "another number of open files");
    });
    expect(child.ended() == 0, "the child failed");
    expect(open_files_of(folder.path()) == 2, "another number of open files");
    other.reset();
    expect(open_files_of(folder.path()) == 1, "a membership that ended left its file open");
  });
  CHECK(parent.ended() == 0);
}

TEST_CASE("neither a child that outlives its parent nor a daemon keeps what the parent held") {
  const Folder folder;
  const std::unique_ptr<Membership> survivor = holder(folder.path(), kLimit, kMiB);
  const Lingerers lingerers;
  Child parent([&] {
    const std::unique_ptr<Membership> member = holder(folder.path(), kLimit, 60 * kMiB);
    if (fork() == 0) {
      setsid();
      if (fork() == 0) {
        expect_refused(*member);
        lingerers->stay();
      }
      _exit(0);
    }
    wait_while(lingerers->ready, 0);
    raise(SIGKILL);
  });
  REQUIRE(parent.ended() == 128 + SIGKILL);
  CHECK(granted(survivor->reserve(0, 99 * kMiB, true)));
}

TEST_CASE("a member that calls execve is dead at once") {
  const Folder folder;
  const std::unique_ptr<Membership> survivor = holder(folder.path(), kLimit, kMiB);
  const Cat cat;
  const Child member([&] {
    const std::unique_ptr<Membership> held = holder(folder.path(), kLimit, 60 * kMiB);
    dup2(cat.input[0], 0);
    dup2(cat.output[1], 1);
    execl("/bin/cat", "cat", nullptr);
    fail("no /bin/cat");
  });
  REQUIRE(cat.runs());
  CHECK(granted(survivor->reserve(0, 99 * kMiB, true)));
  CHECK(kill(member.process(), 0) == 0);
}

TEST_CASE("a spawned program does not keep the member's slot, and a vfork leaves the member unchanged") {
  const Folder folder;
  const std::unique_ptr<Membership> survivor = holder(folder.path(), kLimit, kMiB);
  const Cat cat;
  Child parent([&] {
    const std::unique_ptr<Membership> member = holder(folder.path(), kLimit, 50 * kMiB);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, cat.input[0], 0);
    posix_spawn_file_actions_adddup2(&actions, cat.output[1], 1);
    const char *arguments[] = {"cat", nullptr};
    const char *environment[] = {nullptr};
    pid_t spawned = 0;
    expect(posix_spawn(&spawned, "/bin/cat", &actions, nullptr, const_cast<char **>(arguments),
                       const_cast<char **>(environment)) == 0,
           "no /bin/cat");
    const pid_t quick = vfork();
    if (quick == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(1);
    }
    waitpid(quick, nullptr, 0);
    expect(granted(member->reserve(0, 10 * kMiB, true)), "refused after a vfork");
    expect(kill(spawned, 0) == 0, "the spawned program ended");
    raise(SIGKILL);
  });
  REQUIRE(parent.ended() == 128 + SIGKILL);
  REQUIRE(cat.runs());
  CHECK(survivor->total(0) == 61 * kMiB);
  CHECK(granted(survivor->reserve(0, 99 * kMiB, true)));
}

namespace {

Lingering *lingering;
KillPoint fork_point;
bool forked;

void fork_there(KillPoint point) {
  if (point == fork_point && !forked) {
    forked = true;
    lingering->fork_one();
  }
}

}  // namespace

TEST_CASE("a child that is forked at any step of a join does not keep its parent's slot") {
  const Lingerers lingerers;
  for (std::size_t point = 0; point < kKillPointSteps.size(); ++point) {
    INFO("forked before: " << kKillPointSteps[point]);
    const Folder folder;
    Child parent([&] {
      lingering = &*lingerers;
      fork_point = static_cast<KillPoint>(point);
      kill_point_reached = fork_there;
      const std::unique_ptr<Membership> first = holder(folder.path(), kLimit, kMiB);
      const std::unique_ptr<Membership> second = join(folder.path());
      raise(SIGKILL);
    });
    CHECK(parent.ended() == 128 + SIGKILL);
    lingerers->wait_until_all_run();
    expect_no_members(folder.path());
  }
}

namespace {

void *fork_many(void *) {
  for (int i = 0; i < 40; ++i) {
    lingering->fork_one();
  }
  return nullptr;
}

}  // namespace

TEST_CASE("children that another thread forks while their parent joins do not keep its slots") {
  for (int round = 0; round < count_of(10, 200); ++round) {
    INFO("round " << round);
    const Lingerers lingerers;
    const Folder folder;
    Child parent([&] {
      lingering = &*lingerers;
      pthread_t forker{};
      expect(pthread_create(&forker, nullptr, fork_many, nullptr) == 0, "no thread");
      std::vector<std::unique_ptr<Membership>> members;
      for (int i = 0; i < 100; ++i) {
        members.push_back(join(folder.path()));
      }
      pthread_join(forker, nullptr);
      raise(SIGKILL);
    });
    CHECK(parent.ended() == 128 + SIGKILL);
    lingerers->wait_until_all_run();
    expect_no_members(folder.path());
  }
}
