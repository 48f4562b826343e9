// Damaged or untrusted folders and files: no process crashes or hangs, the limit is never taken for larger than it is,
// and one line names the remedy.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/clock.h"
#include "catch.h"
#include "failed_joins.h"
#include "ledger/shared_layout.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

void write_noise(const std::string &path, std::size_t begin, std::size_t end, Random &random) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(begin));
  for (std::size_t at = begin; at < end; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    file.write(reinterpret_cast<const char *>(&word), sizeof(word));
  }
}

void write_word(const std::string &path, std::size_t place, std::uint32_t word) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(place));
  file.write(reinterpret_cast<const char *>(&word), sizeof(word));
}

constexpr std::uint64_t kBetweenLooks = 1'000'000;  // more than a member goes without a look at its file

void spend(std::uint64_t nanoseconds) {
  for (const std::uint64_t begun = now_ns(); now_ns() - begun < nanoseconds;) {
  }
}

}  // namespace

TEST_CASE("a truncated file is refused by name and left unchanged") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, sizeof(shared::Header) - 1, sizeof(shared::Header),
                                 sizeof(shared::Header) + sizeof(shared::Slot) - 1}) {
    INFO("cut to " << size);
    const Folder folder;
    const std::string file = make_file(folder.path());
    REQUIRE(truncate(file.c_str(), static_cast<off_t>(size)) == 0);
    const bool without_header = size < sizeof(shared::Header);
    const std::string expected = without_header ? "too short for a file of Ration's" : "it was cut short";
    CHECK(contains(join_problem(folder.path()), file + ": "));
    CHECK(contains(join_problem(folder.path()), expected));
    CHECK(contains(reported_problem(folder.path()), expected));
    CHECK(std::filesystem::file_size(file) == size);
  }
}

TEST_CASE("a file of random bytes is refused, and random bytes in its slots grant no memory") {
  Random random(seed_of("noise"));
  for (int round = 0; round < count_of(50, 2000); ++round) {
    const Folder folder;
    const std::string file = make_file(folder.path());
    const std::size_t size = std::filesystem::file_size(file);
    write_noise(file, 0, size, random);
    CHECK(contains(join_problem(folder.path()), "not a file of Ration's"));
    CHECK(contains(reported_problem(folder.path()), "not a file of Ration's"));

    const Folder other;
    const std::string slots = make_file(other.path());
    write_noise(slots, sizeof(shared::Header), size, random);
    Child reader([&] {
      std::string problem;
      const std::unique_ptr<Membership> member = try_join(other.path(), problem);
      if (member == nullptr) {
        expect(contains(problem, "it is damaged"), problem.c_str());
        return;
      }
      // The noise belonged to no owner: it is gone, and only what is reserved now counts.
      expect(member->device(kDevice0, 0) == 0, "the device is missing");
      member->state_limit(0, 100 * kMiB);
      expect(!granted(member->reserve(0, 100 * kMiB + 1, true)), "granted beyond the limit");
      (void)read_groups(other.path(), problem);
    });
    CHECK(reader.ended() == 0);
  }
}

TEST_CASE("a damaged header is refused, whichever of its words is wrong") {
  for (const std::size_t place : {offsetof(shared::Header, header_bytes), offsetof(shared::Header, slot_bytes),
                                  offsetof(shared::Header, slots), offsetof(shared::Header, devices),
                                  offsetof(shared::Header, cell_bytes), offsetof(shared::Header, ready_slots)}) {
    INFO("byte " << place);
    const Folder folder;
    write_word(make_file(folder.path()), place, 0x7fffffff);
    const std::string expected =
        place == offsetof(shared::Header, ready_slots) ? "it was cut short" : "its header is damaged";
    CHECK(contains(join_problem(folder.path()), expected));
    CHECK(contains(reported_problem(folder.path()), expected));
  }
}

TEST_CASE("a member whose file's header is overwritten touches no slot that the file has not") {
  const Folder folder;
  Child member([&] {
    const std::unique_ptr<Membership> joined = join(folder.path());
    expect(joined->device(kDevice0, 0) == 0, "the device is missing");
    joined->state_limit(0, kMiB);
    std::string problem;
    write_word(folder / file_name(GroupKind::kNamed, "g"), offsetof(shared::Header, ready_slots), shared::kSlots);
    expect(!granted(joined->reserve(0, 2 * kMiB, true)), "granted more than the limit");  // looks at every slot
    expect(joined->holders(0).empty(), "somebody holds memory");
    expect(granted(joined->reserve(0, kMiB, true)), "refused what fits");
  });
  CHECK(member.ended() == 0);
}

TEST_CASE("a member that finds its file cut short touches it no more, refuses, and says so once") {
  for (const std::size_t size : {sizeof(shared::Header), sizeof(shared::Header) + sizeof(shared::Slot)}) {
    INFO("cut to " << size);
    const Folder folder;
    Child member([&] {
      const std::unique_ptr<Membership> joined = holder(folder.path(), 2 * kMiB, kMiB);
      const std::unique_ptr<Membership> last = join(folder.path());
      expect(joined->holders(0).size() == 1, "a member is missing");
      expect(truncate((folder / "group-g").c_str(), static_cast<off_t>(size)) == 0, "cannot cut the file");
      expect(!granted(joined->reserve(0, 2 * kMiB, true)), "granted more than the limit");  // looks at every slot
      expect(!granted(joined->reserve(0, 1, true)), "granted without a ledger");
      joined->release(0, kMiB);
      joined->publish(0, {kMiB, 1, {}});
      expect(joined->holders(0).empty() && joined->available(0) == 0, "a ledger without a file");
      expect(contains(joined->trouble(), "cut short, so every allocation is refused: " + (folder / "group-g")),
             "what?");
      expect(joined->trouble().empty(), "says it twice");
    });
    CHECK(member.ended() == 0);
  }
}

TEST_CASE("whatever a member does first after its file was cut short, it does not die of it") {
  using Step = void (*)(Membership &);
  const std::pair<const char *, Step> steps[] = {
      {"reserve", [](Membership &m) { expect(!granted(m.reserve(0, 1, false)), "granted without a ledger"); }},
      {"release", [](Membership &m) { m.release(0, kMiB); }},
      {"charge", [](Membership &m) { m.charge(0, kMiB); }},
      {"publish",
       [](Membership &m) {
         m.publish(0, {kMiB, 1, {}});
       }},
      {"state a limit", [](Membership &m) { m.state_limit(0, kMiB); }},
      {"show a limit", [](Membership &m) { m.show_limit(0, kMiB); }},
      {"find a device", [](Membership &m) { expect(m.device(kDevice0, 0) == -1, "a device without a ledger"); }},
      {"limit", [](Membership &m) { expect(m.limit(0) == 2 * kMiB, "another limit than before"); }},
      {"limit of no device",
       [](Membership &m) { (void)m.has_limits(), expect(m.limit(-1) == 0, "a limit of no device"); }},
      {"limits", [](Membership &m) { expect(!m.has_limits(), "limits without a ledger"); }},
      {"total", [](Membership &m) { expect(m.total(0) == 0, "a total without a ledger"); }},
      {"available", [](Membership &m) { expect(m.available(0) == 0, "something is available"); }},
      {"holders", [](Membership &m) { expect(m.holders(0).empty(), "somebody holds memory"); }},
      {"look for the dead", [](Membership &m) { m.reclaim_from_dead(0); }},
      {"ask for deaths", [](Membership &m) { expect(!m.member_died_within(0, 60), "a dead member"); }},
  };
  for (const std::size_t size : {std::size_t{0}, sizeof(shared::Header)}) {
    for (const auto &[name, step] : steps) {
      INFO("cut to " << size << ", then: " << name);
      const Folder folder;
      Child member([&folder, size = size, step = step] {
        const std::unique_ptr<Membership> joined = holder(folder.path(), 2 * kMiB, kMiB);
        expect(truncate((folder / "group-g").c_str(), static_cast<off_t>(size)) == 0, "cannot cut the file");
        spend(kBetweenLooks);
        step(*joined);
        expect(contains(joined->trouble(), "its file was cut short"), "what?");
      });
      CHECK(member.ended() == 0);
    }
  }
}

TEST_CASE("a member whose file was removed keeps its limit, and says once that newcomers do not share it") {
  const Folder folder;
  Child member([&] {
    const std::unique_ptr<Membership> joined = holder(folder.path(), 2 * kMiB, kMiB);
    expect(!granted(joined->reserve(0, 2 * kMiB, true)) && joined->trouble().empty(), "trouble with a whole file");
    expect(unlink((folder / "group-g").c_str()) == 0, "cannot remove the file");
    expect(!granted(joined->reserve(0, 2 * kMiB, true)), "granted more than the limit");
    expect(contains(joined->trouble(), "its file was removed, so processes that join from now on"), "what?");
    expect(joined->trouble().empty(), "says it twice");
    expect(granted(joined->reserve(0, kMiB, true)), "refused what fits");
  });
  CHECK(member.ended() == 0);
}

TEST_CASE("a process without a group goes on where its file was cut short") {
  const Folder folder;
  Child process([&] {
    std::string problem;
    const std::unique_ptr<Membership> shown =
        Membership::join(folder.path(), GroupKind::kNone, {}, this_process(), problem);
    expect(shown != nullptr && shown->device(kDevice0, 0) == 0, problem.c_str());
    expect(granted(shown->reserve(0, kMiB, true)), "refused without a limit");
    expect(truncate((folder / "ungrouped").c_str(), sizeof(shared::Header)) == 0, "cannot cut the file");
    spend(kBetweenLooks);
    expect(granted(shown->reserve(0, kMiB, true)) && shown->limit(0) == kNoLimit, "refused without a limit");
    shown->release(0, 2 * kMiB);
  });
  CHECK(process.ended() == 0);
}

TEST_CASE("a file of another layout version is refused with a remedy and not written to") {
  for (const std::uint32_t version : {shared::kLayoutVersion + 1, shared::kLayoutVersion - 1}) {
    const Folder folder;
    const std::string file = make_file(folder.path());
    write_word(file, offsetof(shared::Header, version), version);
    const auto bytes = [&] {
      std::ifstream stream(file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(stream), {});
    };
    const std::string before = bytes();
    const std::string problem = join_problem(folder.path());
    CHECK(contains(problem, version > shared::kLayoutVersion ? "a newer Ration" : "an older Ration"));
    CHECK(contains(problem, "layout " + std::to_string(version)));
    CHECK(contains(problem, "let the group's processes end"));
    CHECK(contains(reported_problem(folder.path()), "layout " + std::to_string(version)));
    CHECK(bytes() == before);
  }
}

TEST_CASE("members of a removed or replaced file go on, and new members join another one") {
  const Folder folder;
  const std::unique_ptr<Membership> member = join(folder.path());
  REQUIRE(member->device(kDevice0, 0) == 0);
  member->state_limit(0, 100 * kMiB);
  for (const bool replaced : {false, true}) {
    std::filesystem::remove(folder / "group-g");
    if (replaced) {
      std::ofstream(folder / "group-g") << "something else";
    }
    CHECK(granted(member->reserve(0, 100 * kMiB, true)));
    CHECK_FALSE(granted(member->reserve(0, 1, true)));
    member->release(0, 100 * kMiB);
    CHECK(member->total(0) == 0);
  }
  CHECK(contains(join_problem(folder.path()), "too short for a file of Ration's"));
  std::filesystem::remove(folder / "group-g");
  CHECK(join(folder.path())->total(0) == 0);
}

TEST_CASE("members of a removed file get what dead ones among them held") {
  const Folder folder;
  const std::unique_ptr<Membership> member = holder(folder.path(), 100 * kMiB, 40 * kMiB);
  Child dead([&] {
    const std::unique_ptr<Membership> held = holder(folder.path(), 100 * kMiB, 60 * kMiB);
    std::filesystem::remove(folder / "group-g");
    raise(SIGKILL);
  });
  REQUIRE(dead.ended() == 128 + SIGKILL);
  CHECK(granted(member->reserve(0, 60 * kMiB, true)));
}

TEST_CASE("an entry that is not a regular file is refused under a group's name, without a hang") {
  const auto put = [](const std::string &kind, const std::string &path) {
    if (kind == "a fifo") {
      return mkfifo(path.c_str(), 0600) == 0;
    }
    if (kind == "a folder") {
      return mkdir(path.c_str(), 0700) == 0;
    }
    if (kind == "a link") {
      return symlink("elsewhere", path.c_str()) == 0;
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool bound = bind(made, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0;
    close(made);
    return bound;
  };
  for (const std::string kind : {"a fifo", "a folder", "a link", "a socket"}) {
    INFO(kind);
    const Folder folder;
    REQUIRE(put(kind, folder / "group-g"));
    CHECK(contains(join_problem(folder.path()), folder / "group-g: "));
    CHECK(contains(reported_problem(folder.path()), folder / "group-g: "));
    CHECK_FALSE(std::filesystem::exists(folder / "elsewhere"));

    const Folder around;
    if (kind != "a folder") {
      REQUIRE(put(kind, around / "state"));
      CHECK(contains(join_problem(around / "state"), around / "state: "));
      CHECK(contains(reported_problem(around / "state"), around / "state: "));
      CHECK((kind != "a link" || contains(join_problem(around / "state"), "it is a link")));
    }
  }
  const Folder folder;  // a link to a good folder is a link, too
  REQUIRE(symlink(folder.path().c_str(), (folder / "link").c_str()) == 0);
  CHECK(contains(join_problem(folder / "link"), "it is a link"));
}

TEST_CASE("a file or folder is not trusted if others may write to it or own it") {
  for (const mode_t mode : {0620U, 0602U, 0666U}) {
    const Folder folder;
    REQUIRE(chmod(make_file(folder.path()).c_str(), mode) == 0);
    CHECK(contains(join_problem(folder.path()), "other users may write to it"));
    CHECK(contains(reported_problem(folder.path()), "other users may write to it"));
  }
  for (const mode_t mode : {0720U, 0702U, 01777U}) {
    const Folder folder;
    REQUIRE(chmod(folder.path().c_str(), mode) == 0);
    CHECK(contains(join_problem(folder.path()), "other users may write to it"));
    CHECK(contains(reported_problem(folder.path()), "other users may write to it"));
  }
  if (!is_root()) {
    return;
  }
  const Folder folder;
  make_file(folder.path());
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  Child other_user([&] {
    become_other_user();
    std::string problem;
    expect(try_join(folder.path(), problem) == nullptr, "joined in another's folder");
    expect(contains(problem, "it belongs to another user; set RATION_STATE_DIR"), problem.c_str());
  });
  CHECK(other_user.ended() == 0);
  const Folder shared_folder;  // the folder is the other user's, the file is not
  make_file(shared_folder.path());
  REQUIRE(chown(shared_folder.path().c_str(), kOtherUser, kOtherUser) == 0);
  REQUIRE(chmod((shared_folder / "group-g").c_str(), 0644) == 0);
  Child owner([&] {
    become_other_user();
    std::string problem;
    expect(try_join(shared_folder.path(), problem) == nullptr, "joined in another's file");
    expect(contains(problem, shared_folder / "group-g: "), problem.c_str());
  });
  CHECK(owner.ended() == 0);
}
