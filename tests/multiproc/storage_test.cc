// A folder whose file system is full, read-only or beyond a limit of the process: no process is killed or hangs,
// members of a group go on, and one line names the problem.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "catch.h"
#include "failed_joins.h"
#include "ledger/export_file.h"
#include "ledger/shared_layout.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

#if defined(RATION_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace

TEST_CASE("a folder that cannot be made or read is reported") {
  const Folder folder;
  CHECK(contains(join_problem(folder / "absent/deeper"), folder / "absent/deeper: No such file"));
  if (!is_root()) {
    return;
  }
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  Child other_user([&] {
    become_other_user();
    std::string problem;
    expect(try_join(folder / "state", problem) == nullptr, "made a folder where it may not");
    expect(contains(problem, "Permission denied"), problem.c_str());
  });
  CHECK(other_user.ended() == 0);
}

namespace {

// Call in a child: mounts a small file system of its own.
bool mounted(const std::string &folder, const char *options) {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", folder.c_str(), "tmpfs", 0, options) == 0;
}

constexpr int kSkipped = 77;

void check_mounted(Child child) {
  const int status = child.ended();
  if (status == kSkipped) {
    std::printf("skipped: the kernel refuses a mount\n");
  } else {
    CHECK(status == 0);
  }
}

}  // namespace

TEST_CASE("on a full file system one line says so, no process is killed, and members go on") {
  const Folder folder;
  check_mounted(Child([&] {
    if (!mounted(folder.path(), "size=92k,mode=700")) {
      _exit(kSkipped);
    }
    std::vector<std::unique_ptr<Membership>> members;
    std::string problem;
    while (std::unique_ptr<Membership> member = try_join(folder.path(), problem)) {
      expect(member->device(kDevice0, 0) == 0, "the device is missing");
      members.push_back(std::move(member));
    }
    expect(members.size() == 7, "92 KiB hold a header and seven slots");
    expect(contains(problem, "no space for another process: No space left on device"), problem.c_str());
    members[0]->state_limit(0, 7 * kMiB);
    for (const std::unique_ptr<Membership> &member : members) {
      expect(granted(member->reserve(0, kMiB, true)), "refused what fits");
    }
    members.pop_back();
    expect(try_join(folder.path(), problem) == nullptr, "a join reclaimed a dead member's slot");
    expect(granted(members[0]->reserve(0, kMiB, true)), "the dead member's bytes are lost");
    expect(try_join(folder.path(), problem) != nullptr, "the dead member's slot is lost");
  }));
  check_mounted(Child([&] {
    if (!mounted(folder.path(), "nr_inodes=1,mode=700")) {
      _exit(kSkipped);
    }
    std::string problem;
    expect(try_join(folder.path(), problem) == nullptr && contains(problem, "No space left on device"),
           problem.c_str());
    expect(names_in(folder.path()).empty(), "a temporary file stayed");
  }));
}

TEST_CASE("where a file system drops locks with their descriptor, joins and shared blocks are refused in words") {
  const Folder folder;
  check_mounted(Child([&] {
    const auto in = [&](const char *name) { return folder.path() + "/" + name; };
    if (!mounted(folder.path(), "mode=700")) {
      _exit(kSkipped);
    }
    for (const char *name : {"lower", "upper", "work", "merged"}) {
      expect(mkdir(in(name).c_str(), 0700) == 0, "no folder");
    }
    const std::string options = "lowerdir=" + in("lower") + ",upperdir=" + in("upper") + ",workdir=" + in("work");
    if (mount("overlay", in("merged").c_str(), "overlay", 0, options.c_str()) != 0) {
      _exit(kSkipped);
    }
    std::string problem;
    for (int member = 0; member < 2; ++member) {
      expect(try_join(in("merged"), problem) == nullptr, "joined without a life sign");
      expect(contains(problem, "set RATION_STATE_DIR"), problem.c_str());
    }
    expect(ExportFile::make(in("merged"), problem) == nullptr, "a block was shared without a life sign");
    expect(contains(problem, "set RATION_STATE_DIR"), problem.c_str());
    expect(try_join(in("upper"), problem) != nullptr, problem.c_str());  // without the overlay it is kept
  }));
}

TEST_CASE("on a read-only file system one line says so") {
  const Folder folder;
  check_mounted(Child([&] {
    if (!mounted(folder.path(), "mode=700")) {
      _exit(kSkipped);
    }
    { const std::unique_ptr<Membership> member = join(folder.path()); }
    expect(mount(nullptr, folder.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0, "cannot remount");
    std::string problem;
    for (const char *group : {"g", "new"}) {
      expect(Membership::join(folder.path(), GroupKind::kNamed, group, this_process(), problem) == nullptr &&
                 contains(problem, "Read-only file system"),
             problem.c_str());
    }
    expect(contains(read_groups(folder.path(), problem).at(0).problem, "Read-only file system"),
           "the problem is not reported");
  }));
}

namespace {

void limit_to(int resource, rlim_t most) {
  struct rlimit limit {};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  limit.rlim_cur = most;
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

}  // namespace

TEST_CASE("a process at one of its resource limits is refused with a message and never killed") {
  const Folder folder;
  make_file(folder.path());
  Child descriptors([&] {
    limit_to(RLIMIT_NOFILE, 0);
    std::string problem;
    expect(try_join(folder.path(), problem) == nullptr && contains(problem, "Too many open files"), problem.c_str());
  });
  CHECK(descriptors.ended() == 0);

  // Beyond RLIMIT_FSIZE the kernel sends SIGXFSZ, which ends a program.
  for (const rlim_t most :
       {rlim_t{0}, rlim_t{100}, rlim_t{sizeof(shared::Header)}, rlim_t{sizeof(shared::Header) + 1}}) {
    Child file_size([&] {
      const Folder other;
      limit_to(RLIMIT_FSIZE, most);
      std::string problem;
      expect(try_join(other.path(), problem) == nullptr && contains(problem, "File too large"), problem.c_str());
      expect(read_groups(other.path(), problem).empty() && names_in(other.path()).empty(), "a file was left");
    });
    CHECK(file_size.ended() == 0);
  }
  if (kSanitized) {
    std::printf("skipped: no RLIMIT_AS under a sanitizer\n");
    return;
  }
  Child address_space([&] {
    limit_to(RLIMIT_AS, 24 * kMiB);
    std::string problem;
    expect(try_join(folder.path(), problem) == nullptr && contains(problem, "Cannot allocate memory"), problem.c_str());
  });
  CHECK(address_space.ended() == 0);
}

TEST_CASE("a member without free descriptors goes on, and finds dead members by the one that it keeps, or later") {
  for (const bool kept : {true, false}) {
    const Folder folder;
    Child child([&] {
      std::unique_ptr<Membership> dead = join(folder.path());
      const std::unique_ptr<Membership> member = join(folder.path());
      expect(member->device(kDevice0, 0) == 0, "the device is missing");
      member->state_limit(0, 100 * kMiB);
      expect(granted(dead->reserve(0, 60 * kMiB, true)), "refused what fits");
      dead.reset();
      if (!kept) {
        expect(syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, 0) == 0, "descriptors stay open");
      }
      limit_to(RLIMIT_NOFILE, 0);
      expect(granted(member->reserve(0, 40 * kMiB, true)), "refused what fits");
      expect(granted(member->reserve(0, 1, true)) == kept, "granted bytes that a member holds, or lost a dead one's");
      expect(member->trouble().empty() == kept && member->trouble().empty(), "says it never, or twice");
      limit_to(RLIMIT_NOFILE, 100);
      expect(granted(member->reserve(0, 60 * kMiB - 1, true)), "the dead member's bytes are lost");
    });
    CHECK(child.ended() == 0);
  }
}
