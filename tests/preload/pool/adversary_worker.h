// One thread of the adversary, and the state that all its threads share.
// Layer: work.h, handed_out.h. Threads: Arena any; a Worker belongs to one thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <latch>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "handed_out.h"
#include "work.h"

namespace preload::pool {

inline constexpr unsigned kThreads = 6;

using Count = std::atomic<unsigned long long>;

struct Counts {
  Count rounds{0}, refused{0}, left_behind{0}, in_flight{0}, late_reads{0};
  std::array<std::array<Count, kStreamKinds.size()>, 32> late{};  // by kind of work and of stream
};

struct Arena {
  Verdict verdict;
  Counts counts;
  HandedOut handed_out;
  std::vector<Site> sites;
  bool across = false;
  bool async = false;
  std::atomic<long long> rounds_left{0};
  std::latch all_set_up{kThreads};  // no thread allocates before all threads have created their streams
  void *late_host = nullptr;        // kMostBytes, pinned: the bytes that a late copy from the host leaves

  bool prepare();
  // Blocks that another thread is to free.
  void hand_over(CUdeviceptr address);
  std::optional<CUdeviceptr> handed_over();

 private:
  std::mutex mutex_;
  std::vector<CUdeviceptr> mailbox_;
};

class Worker {
 public:
  Worker(Arena &arena, unsigned number, std::uint64_t seed)
      : arena_(arena), number_(number), random_(seed * 64 + number) {}
  void run();

  static constexpr std::size_t kHeld = 4;
  static constexpr std::size_t kReads = 4;

 private:
  struct Held {
    CUdeviceptr address = 0;  // 0: an empty place
    std::uint32_t bytes = 0;
    std::uint32_t word = 0;
    std::size_t site = 0;
    CUstream stream = nullptr;
    void *pinned = nullptr;
  };
  // Bytes that late work reads from a block that has been freed in the meantime.
  struct Read {
    std::size_t site = 0;
    CUstream stream = nullptr;
    std::uint32_t bytes = 0;  // 0: none is queued
    std::uint32_t word = 0;
    void *pinned = nullptr;
  };

  // The place where work is still queued.
  struct Left {
    std::size_t site = 0;
    CUstream stream = nullptr;
    bool reads = false;
  };

  bool set_up();
  bool take(Held *place);
  bool write(const Held &block);
  void give_back(Held *place);
  bool holds_only(const Held &block);
  // Queues work on the block; the block's free will not wait for it. Returns nullopt on failure (see the verdict).
  std::optional<Left> leave_behind(const Held &block, std::optional<bool> reads);
  const Kind &choose_kind(const Held &block, bool elsewhere, std::optional<bool> reads);
  void free_block(const Held &block, const Left &left, bool only_one);
  void free_handed_over();
  bool check(Read *read);
  bool same(const void *bytes, std::uint32_t count, std::uint32_t word, const char *where);
  bool go_to(std::size_t site);
  StreamKind choose_stream(std::size_t site);
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
  bool one_in(unsigned bound) { return random_() % bound == 0; }

  Arena &arena_;
  const unsigned number_;
  std::mt19937_64 random_;
  std::uint32_t sequence_ = 0;
  std::vector<Desk> desks_;
  std::array<Held, kHeld> held_;
  std::array<Read, kReads> reads_;
};

}  // namespace preload::pool
