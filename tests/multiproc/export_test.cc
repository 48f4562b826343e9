// Blocks that one process shares and others open: which opens succeed, how long they last, and what the owner sees.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

#include "exports.h"
#include "ledger/group_view.h"
#include "ledger/process_end.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

TEST_CASE("an exporter and an opener whose file was cut short do not die of it, and the block stays open") {
  const Folder folder;
  const Shared<Meeting> meeting;
  Child exporter([&] {
    const auto file = make_file(folder);
    const ExportToken token = file->publish(3, block_at(512), export_nonce());
    Child opener([&] {
      const auto lease = open_one(folder, token);
      expect(lease != nullptr && lease->is_live(), "the token opens nothing");
      open(meeting->has_it, 1);
      wait_while(meeting->over, 0);
      expect(!lease->is_live(), "the record is gone");
    });
    wait_while(meeting->has_it, 0);
    expect(file->has_pages() && truncate(file->path().c_str(), 0) == 0, "cannot cut the file");
    expect(!file->has_pages(), "nothing is missing");
    open(meeting->over, 1);
    expect(opener.ended() == 0, "the opener died");
    file->end(3);
    expect(is_open(*file, 3), "a block whose record is gone is reused");
    file->remove_if_unused();
  });
  CHECK(exporter.ended() == 0);
}

TEST_CASE("another process opens a block by its token, and the owner sees it open until it is closed") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(3, block_at(512), export_nonce());
  CHECK_FALSE(is_open(*file, 3));
  const Shared<Meeting> meeting;
  Child child([&] {
    const auto lease = open_one(folder, token);
    expect(lease != nullptr, "the token opens nothing");
    const ExportedBlock wanted = block_at(512);
    expect(lease->block().offset == 512 && lease->block().bytes == 1000, "another block");
    expect(std::memcmp(lease->block().handle, wanted.handle, sizeof(wanted.handle)) == 0, "another handle");
    expect(lease->is_live(), "live");
    open(meeting->has_it, 1);
    wait_while(meeting->over, 0);
    expect(!lease->is_live(), "its owner said that it has ended");
  });
  wait_while(meeting->has_it, 0);
  CHECK(is_open(*file, 3));
  CHECK_FALSE(is_open(*file, 4));
  CHECK_FALSE(ExportFile::Snapshot(*file).none_open());
  file->end(3);
  CHECK(is_open(*file, 3));
  open(meeting->over, 1);
  CHECK(child.ended() == 0);
  CHECK_FALSE(is_open(*file, 3));
  CHECK(ExportFile::Snapshot(*file).none_open());
}

TEST_CASE("a block is closed when its opener is killed") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  const Shared<Meeting> meeting;
  Child child([&] { keep_open(folder, token, meeting->has_it, meeting->over); });
  wait_while(meeting->has_it, 0);
  CHECK(is_open(*file, 0));
  child.kill();
  CHECK_FALSE(is_open(*file, 0));
}

namespace {

// As the kernel does first where a process is killed: takes the mappings of `file`, and with them its locks.
void unmap_all_of(const std::string &file) {
  std::ifstream maps("/proc/thread-self/maps");  // the first thread has no memory any more
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (line.find(file) != std::string::npos && std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) {
      expect(munmap(reinterpret_cast<void *>(begin), end - begin) == 0, "no mapping");
    }
  }
}

struct Ending {
  Gate has_it, unmap, unmapped, over;
};

}  // namespace

TEST_CASE("a block stays open while its killed opener still has its files, though its lock is gone") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(7, block_at(512), export_nonce());
  const Shared<Ending> ending;
  Child child([&] {
    // The first thread ends, as all do in a process that is killed; another still holds what they share.
    std::thread other([&] {
      auto lease = open_one(folder, token);
      expect(lease != nullptr, "the token opens nothing");
      const ProcessMark itself = this_process_mark();
      while (state_of(itself) != ProcessState::ending) {
        std::this_thread::yield();  // the first thread is on its way
      }
      open(ending->has_it, 1);
      wait_while(ending->unmap, 0);
      unmap_all_of(file->path());
      (void)lease.release();
      open(ending->unmapped, 1);
      wait_while(ending->over, 0);
      _exit(0);
    });
    other.detach();
    syscall(SYS_exit, 0);
  });
  wait_while(ending->has_it, 0);
  file->end(7);
  CHECK(is_open(*file, 7));
  open(ending->unmap, 1);
  wait_while(ending->unmapped, 0);
  CHECK(is_open(*file, 7));
  CHECK_FALSE(is_open(*file, 6));
  open(ending->over, 1);
  CHECK(child.ended() == 0);
  CHECK_FALSE(is_open(*file, 7));
}

TEST_CASE("a block is closed when its opener executes another program or waits, dead, for its parent") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  for (const bool executes : {true, false}) {
    const Shared<Meeting> meeting;
    const pid_t opener = fork();
    if (opener == 0) {
      const auto lease = open_one(folder, token);
      expect(lease != nullptr, "the token opens nothing");
      open(meeting->has_it, 1);
      wait_while(meeting->over, 0);
      if (executes) execlp("sleep", "sleep", "100", nullptr);
      _exit(0);
    }
    REQUIRE(opener > 0);
    wait_while(meeting->has_it, 0);
    CHECK(is_open(*file, 0));
    open(meeting->over, 1);
    siginfo_t dead{};
    if (!executes) REQUIRE(waitid(P_PID, static_cast<id_t>(opener), &dead, WEXITED | WNOWAIT) == 0);
    while (executes && is_open(*file, 0)) sched_yield();
    CHECK_FALSE(is_open(*file, 0));
    kill(opener, SIGKILL);
    REQUIRE(waitpid(opener, nullptr, 0) == opener);
  }
}

TEST_CASE("of more openers than a record has places for, each keeps the block open") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  std::vector<std::unique_ptr<ExportLease>> leases;
  for (std::uint32_t number = 0; number < shared::kOpeners + 2; ++number) {
    leases.push_back(open_one(folder, token));
    REQUIRE(leases.back() != nullptr);
  }
  while (!leases.empty()) {
    CHECK(is_open(*file, 0));
    leases.pop_back();
  }
  CHECK_FALSE(is_open(*file, 0));
}

TEST_CASE("a block stays open until the last of several openers closes it") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(4094, block_at(512), export_nonce());
  const Shared<Meeting> one, other;
  Child first([&] { keep_open(folder, token, one->has_it, one->over); });
  Child second([&] { keep_open(folder, token, other->has_it, other->over); });
  wait_while(one->has_it, 0);
  wait_while(other->has_it, 0);
  first.kill();
  CHECK(is_open(*file, 4094));
  open(other->over, 1);
  CHECK(second.ended() == 0);
  CHECK_FALSE(is_open(*file, 4094));
}

TEST_CASE("a token of an ended block, of another generation or a forged one opens nothing") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken first = file->publish(3, block_at(512), export_nonce());
  REQUIRE(open_one(folder, first) != nullptr);
  file->end(3);
  CHECK(open_one(folder, first) == nullptr);
  const ExportToken second = file->publish(3, block_at(2048), export_nonce());
  CHECK(open_one(folder, first) == nullptr);
  REQUIRE(open_one(folder, second) != nullptr);
  const auto altered = [&](auto change) {
    ExportToken token = second;
    change(token);
    return open_one(folder, token) == nullptr;
  };
  CHECK(altered([](ExportToken &token) { ++token.nonce[0]; }));
  CHECK(altered([](ExportToken &token) { ++token.nonce[1]; }));
  CHECK(altered([](ExportToken &token) { ++token.generation; }));
  CHECK(altered([](ExportToken &token) { ++token.record; }));
  CHECK(altered([](ExportToken &token) { token.record = 4095; }));
  CHECK(altered([](ExportToken &token) { token.record = UINT32_MAX; }));
  CHECK(altered([](ExportToken &token) { ++token.exporter; }));
  CHECK(altered([](ExportToken &token) { ++token.version; }));
  CHECK(altered([](ExportToken &token) { ++token.magic; }));
  file->end(3);
  ExportedBlock outside = block_at(512);
  outside.offset = outside.slab_bytes - 1;
  CHECK(open_one(folder, file->publish(3, outside, export_nonce())) == nullptr);
  CHECK_FALSE(is_open(*file, 3));  // none of these tries left a lock
}

TEST_CASE("tokens of a dead process open nothing, even while its children live") {
  const Folder folder;
  const Shared<Meeting> meeting;
  const Shared<Gate> orphan_there;
  const Shared<Gate> orphan_over;
  Child exporter([&] {
    std::string problem;
    const auto file = ExportFile::make(folder.path(), problem);
    meeting->token = file->publish(7, block_at(512), export_nonce());
    if (fork() == 0) {
      open(*orphan_there, 1);
      wait_while(*orphan_over, 0);
      _exit(0);
    }
    wait_while(*orphan_there, 0);
    open(meeting->has_it, 1);
    wait_while(meeting->over, 0);
  });
  wait_while(meeting->has_it, 0);
  REQUIRE(open_one(folder, meeting->token) != nullptr);
  exporter.kill();
  CHECK(open_one(folder, meeting->token) == nullptr);
  open(*orphan_over, 1);
}

TEST_CASE("a forked child does not inherit an open block") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  const Shared<Meeting> meeting;
  const Shared<Gate> orphan_over;
  Child child([&] {
    const auto lease = open_one(folder, token);
    expect(lease != nullptr, "the token opens nothing");
    if (fork() == 0) {
      open(meeting->has_it, 1);
      wait_while(*orphan_over, 0);
      _exit(0);
    }
    wait_while(meeting->has_it, 0);
  });
  CHECK(child.ended() == 0);
  CHECK_FALSE(is_open(*file, 0));
  open(*orphan_over, 1);
}

TEST_CASE("the next look removes a dead exporter's file once none of its blocks is open") {
  const Folder folder;
  const Shared<Meeting> exporting, importing;
  Child exporter([&] { export_and_stay(folder, *exporting); });
  wait_while(exporting->has_it, 0);
  Child importer([&] { keep_open(folder, exporting->token, importing->has_it, importing->over); });
  wait_while(importing->has_it, 0);
  std::string problem;
  const auto files = [&] {
    (void)read_groups(folder.path(), problem);
    return names_in(folder.path()).size();
  };
  CHECK(files() == 1);
  exporter.kill();
  CHECK(files() == 1);
  importer.kill();
  CHECK(files() == 0);
}

TEST_CASE("a process that ends in order removes its file unless one of its blocks is open") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  {
    const auto lease = open_one(folder, token);
    REQUIRE(lease != nullptr);
    file->remove_if_unused();
    CHECK(names_in(folder.path()).size() == 1);
  }
  file->remove_if_unused();
  CHECK(names_in(folder.path()).empty());
  CHECK(is_open(*file, 0));  // can no longer be determined
  CHECK(open_one(folder, token) == nullptr);
}

TEST_CASE("a file that is damaged or untrusted opens nothing") {
  const Folder folder;
  auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  const std::string path = file->path();
  SECTION("others may write to it") {
    REQUIRE(chmod(path.c_str(), 0622) == 0);
  }
  SECTION("it was cut short") {
    REQUIRE(truncate(path.c_str(), 4096) == 0);
  }
  SECTION("it is a link") {
    REQUIRE(rename(path.c_str(), (path + "x").c_str()) == 0);
    REQUIRE(symlink((path + "x").c_str(), path.c_str()) == 0);
  }
  std::string problem;
  CHECK(ExportLease::take(folder.path(), token, problem) == nullptr);
  CHECK_FALSE(problem.empty());
}

TEST_CASE("without a folder or file an exporter gets the reason") {
  std::string problem;
  CHECK(ExportFile::make("", problem) == nullptr);
  CHECK_FALSE(problem.empty());
  CHECK(ExportFile::make("/proc/self/none", problem) == nullptr);
  CHECK_FALSE(problem.empty());
}

}  // namespace
