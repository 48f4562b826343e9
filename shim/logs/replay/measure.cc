#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/saturating.h"
#include "logs/replay/granule_arena.h"
#include "logs/replay/replay.h"
#include "pool/shared_pool.h"

namespace ration::pool::replay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPasses = 5;  // the fastest pass counts, because other processes may use the machine

std::uint64_t ns_between(Clock::time_point begin, Clock::time_point end) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(end - begin).count());
}

std::uint64_t median_clock_ns() {
  std::vector<std::uint64_t> samples(10001);
  for (std::uint64_t &sample : samples) {
    const Clock::time_point begin = Clock::now();
    sample = ns_between(begin, Clock::now());
  }
  std::nth_element(samples.begin(), samples.begin() + 5000, samples.end());
  return samples[5000];
}

struct Copy {
  std::optional<Stop> stop;
  std::vector<std::uint64_t> alloc_ns;
  std::vector<std::uint64_t> free_ns;
  std::uint64_t wall_ns = 0;
};

template <bool kTimed>
void run_copy(const Trace &trace, SharedPool &pool, Upstream &upstream, std::barrier<> &start, Copy &copy) {
  std::vector<Address> addresses(trace.ids);
  if (kTimed) {
    copy.alloc_ns.reserve(trace.operations.size());
    copy.free_ns.reserve(trace.operations.size());
  }
  start.arrive_and_wait();
  const Clock::time_point from = Clock::now();
  for (std::size_t index = 0; index < trace.operations.size(); ++index) {
    const Operation &operation = trace.operations[index];
    Clock::time_point begin{};
    if (kTimed) begin = Clock::now();
    if (operation.is_free) {
      (void)pool.free(addresses[operation.id]);
      if (kTimed) copy.free_ns.push_back(ns_between(begin, Clock::now()));
      continue;
    }
    const AllocateOutcome outcome = pool.allocate(operation.bytes, upstream);
    if (kTimed) copy.alloc_ns.push_back(ns_between(begin, Clock::now()));
    if (!outcome) {
      copy.stop = Stop{index + 1, operation.bytes, outcome.largest_free};
      return;
    }
    addresses[operation.id] = outcome.block.address;
  }
  copy.wall_ns = ns_between(from, Clock::now());
}

template <bool kTimed>
std::vector<Copy> run_copies(const Trace &trace, std::uint64_t arena_bytes, unsigned threads, Backing backing,
                             std::uint64_t &metadata_bytes) {
  SharedPool pool;
  NoUpstream none;
  std::optional<GranuleArena> arena;
  if (backing == Backing::slab) {
    (void)pool.add_slab({kArenaAddress, arena_bytes, 0});
  } else {
    arena.emplace(arena_bytes).preallocate(pool);
  }
  Upstream &upstream = arena ? static_cast<Upstream &>(*arena) : none;
  std::vector<Copy> copies(threads);
  std::barrier start(static_cast<std::ptrdiff_t>(threads));
  {
    std::vector<std::jthread> running;
    for (Copy &copy : copies) {
      running.emplace_back([&] { run_copy<kTimed>(trace, pool, upstream, start, copy); });
    }
  }
  metadata_bytes = pool.statistics().metadata_bytes;
  return copies;
}

void add_samples(std::vector<std::uint64_t> &all, const std::vector<std::uint64_t> &some, std::uint64_t clock_ns) {
  for (const std::uint64_t sample : some) all.push_back(minus_or_zero(sample, clock_ns));
}

}  // namespace

Measurement measure(const Trace &trace, std::uint64_t arena_bytes, unsigned threads, Backing backing) {
  Measurement result;
  result.clock_ns = median_clock_ns();
  std::uint64_t metadata_bytes = 0;
  for (const Copy &copy : run_copies<true>(trace, arena_bytes, threads, backing, metadata_bytes)) {
    if (copy.stop && !result.stop) result.stop = copy.stop;
    add_samples(result.alloc_ns, copy.alloc_ns, result.clock_ns);
    add_samples(result.free_ns, copy.free_ns, result.clock_ns);
  }
  std::sort(result.alloc_ns.begin(), result.alloc_ns.end());
  std::sort(result.free_ns.begin(), result.free_ns.end());
  const double blocks = static_cast<double>(trace.peak_live) * threads;
  result.metadata_bytes_per_block = static_cast<double>(metadata_bytes) / blocks;
  const double pairs = static_cast<double>(trace.operations.size()) / 2 * threads;
  for (int pass = 0; pass < kPasses && !result.stop; ++pass) {
    double wall_ns = 0;
    for (const Copy &copy : run_copies<false>(trace, arena_bytes, threads, backing, metadata_bytes)) {
      if (copy.stop && !result.stop) result.stop = copy.stop;
      wall_ns += static_cast<double>(copy.wall_ns);
    }
    if (pass == 0 || wall_ns / pairs < result.pair_ns_mean) result.pair_ns_mean = wall_ns / pairs;
  }
  return result;
}

}  // namespace ration::pool::replay
