// Blocks that end while another process opens them.
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <functional>
#include <utility>

#include "exports.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

// Runs just before an opener locks a block.
std::function<void()> before_lock;

TEST_CASE("an opener sees an end that falls between its check of the file and its lock") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  bool used_again = false;
  before_lock = [&] {
    file->end(0);
    used_again = !is_open(*file, 0);
  };
  CHECK(open_one(folder, token) == nullptr);
  CHECK(used_again);
  CHECK_FALSE(is_open(*file, 0));
}

TEST_CASE("an opener sees the death of an exporter that dies before the lock") {
  const Folder folder;
  const Shared<Meeting> meeting;
  Child exporter([&] { export_and_stay(folder, *meeting); });
  wait_while(meeting->has_it, 0);
  before_lock = [&] { exporter.kill(); };
  CHECK(open_one(folder, meeting->token) == nullptr);
}

struct Race {
  std::atomic<std::uint64_t> generation;  // on offer
  std::atomic<std::uint64_t> closed;      // the last one that its owner saw ended and closed
  std::atomic<std::uint64_t> opened;
  std::atomic<bool> over;
};

// The opener tries without a pause, so that an end falls between any two of its steps.
TEST_CASE("when one process ends a block while another opens it, one of them sees the other") {
  const Folder folder;
  const Shared<Race> race;
  const std::uint64_t rounds = count_of<std::uint64_t>(3000, 100'000);
  const auto file = make_file(folder);
  const ExportNonce nonce = export_nonce();
  ExportToken token = file->publish(0, block_at(512), nonce);
  race->generation = token.generation;
  Child opener([&] {
    ExportToken tried = token;
    while (!race->over) {
      tried.generation = race->generation;
      const auto lease = open_one(folder, tried);
      race->opened += lease != nullptr ? 1 : 0;
      expect(lease == nullptr || race->closed < tried.generation, "opened after its owner saw it closed");
    }
  });
  Random random(seed_of("race"));
  std::uint64_t seen_open = 0;
  for (std::uint64_t round = 0; round < rounds || seen_open == 0; ++round) {  // the scheduler decides whether they meet
    const std::uint64_t begun = race->opened;
    while (race->opened == begun && round % 8 == 0) {
      sched_yield();
    }
    for (std::uint64_t turns = random.below(2000); turns != 0; --turns) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    file->end(0);
    while (is_open(*file, 0)) {
      ++seen_open;
    }
    race->closed = token.generation;
    token = file->publish(0, block_at(512), nonce);
    race->generation = token.generation;
  }
  race->over = true;
  CHECK(opener.ended() == 0);
}

}  // namespace

// Replaces libc's, so that a test can act between two steps of the ledger.
extern "C" int fcntl(int descriptor, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  auto *const argument = va_arg(arguments, void *);
  va_end(arguments);
  if (command == F_OFD_SETLK && static_cast<const struct flock *>(argument)->l_type == F_RDLCK) {
    if (const auto now = std::exchange(before_lock, nullptr)) {
      now();
    }
  }
  return static_cast<int>(syscall(SYS_fcntl, descriptor, command, argument));
}
