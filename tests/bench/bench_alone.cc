// Cost of the pool alone, with its lock and its look-up by address, compared with a lock, a look-up and the same work
// on the host's heap. All in one process, in turns; the minimum of many rounds.
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "churn.h"
#include "measured.h"
#include "paired.h"
#include "pairs.h"
#include "pool_memory.h"
#include "second_thread.h"

using namespace ration::bench;

namespace {

constexpr std::size_t kPairs = 20'000;
constexpr std::size_t kWarmUp = 2'000;  // at least
constexpr std::uint32_t kFew = 1'000;

template <class Value>
void keep(const Value &value) {
  asm volatile("" : : "g"(value) : "memory");
}

// Keys with the distances and the random order of blocks.
class MapLookup {
 public:
  MapLookup() {
    Random random(1);
    std::vector<std::uint64_t> keys;
    for (std::uint64_t key = 0; keys.size() < kFew; keys.push_back(key)) {
      key += random.log_uniform(kLeastBytes, kMostBytes);
      map_.emplace(key, keys.size());
    }
    for (std::size_t i = 0; i < kPairs; ++i) asked_.push_back(keys[random.below(kFew)]);
  }
  void measure(Figures &figures) {
    figures.least("map_1000", "ns", ns_each(kPairs, [this] {
                    for (const std::uint64_t key : asked_) keep(map_.find(key)->second);
                  }));
  }

 private:
  std::map<std::uint64_t, std::uint64_t> map_;
  std::vector<std::uint64_t> asked_;
};

// A thousandth of each size, so that even the largest come from the heap and none is mapped separately.
class HostMemory {
 public:
  std::uintptr_t allocate(std::uint64_t bytes) {
    constexpr std::uint64_t kScale = 1024;
    return reinterpret_cast<std::uintptr_t>(std::malloc(bytes / kScale + 1));
  }
  void free(std::uintptr_t block) { std::free(reinterpret_cast<void *>(block)); }
};

// The pool and the host's heap under the same steps, with a given number of live blocks.
class Level {
 public:
  Level(std::uint32_t live, std::uint32_t most_bytes)
      : live_(live),
        churn_(draw_churn(live, most_bytes, live)),
        memory_(PoolMemory::slab_bytes_for(churn_.peak_bytes)),
        pool_(memory_, churn_),
        heap_(host_, churn_) {
    // Reaches the steady state: replaces each block a few times.
    pool_.replace(churn_.steps.size());
    heap_.replace(churn_.steps.size());
  }

  void measure(Figures &figures) {
    figures.least(named("replace"), "ns", warm_ns(pool_));
    figures.least(named("malloc"), "ns", warm_ns(heap_));
    figures.set(named("metadata"), "bytes",
                static_cast<double>(memory_.statistics().metadata_bytes) / static_cast<double>(live_));
  }

  // The 99th percentile of single operations, without the clock's own cost.
  void measure_tail(Figures &figures, double clock_ns) {
    pool_.replace(kWarmUp);
    std::vector<double> frees, allocations;
    frees.reserve(kPairs);
    allocations.reserve(kPairs);
    Clock::time_point begin;
    pool_.replace_watched(
        kPairs, [&] { begin = Clock::now(); }, [&] { frees.push_back(ns_between(begin, Clock::now())); },
        [&] { allocations.push_back(ns_between(begin, Clock::now())); });
    figures.least(named("p99_free"), "ns", std::max(0.0, percentile_99(frees) - clock_ns));
    figures.least(named("p99_allocate"), "ns", std::max(0.0, percentile_99(allocations) - clock_ns));
  }

 private:
  [[nodiscard]] std::string named(const std::string &what) const { return what + '_' + std::to_string(live_); }
  // Warms up with most of the blocks: the other benchmarks' rounds evicted their cache lines.
  template <class Blocks>
  double warm_ns(Blocks &blocks) const {
    blocks.replace(std::max<std::size_t>(kWarmUp, live_));
    return ns_each(kPairs, [&] { blocks.replace(kPairs); });
  }
  static double percentile_99(std::vector<double> &values) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() * 99 / 100);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  }

  const std::uint32_t live_;
  const Churn churn_;
  PoolMemory memory_;
  HostMemory host_;
  Replacer<PoolMemory> pool_;
  Replacer<HostMemory> heap_;
};

double clock_ns() {
  std::vector<double> samples(10'001);
  for (double &sample : samples) {
    const Clock::time_point begin = Clock::now();
    sample = ns_between(begin, Clock::now());
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

void run(const Arguments &arguments) {
  const SecondThread second_thread;
  pin();
  mallopt(M_MMAP_THRESHOLD, 1 << 30);  // the yardstick maps and unmaps no page
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  MapLookup map;
  PoolMemory lifo(kSlabBytes);
  const std::vector<std::uintptr_t> live = fill(lifo);
  std::vector<std::unique_ptr<Level>> levels;
  levels.push_back(std::make_unique<Level>(kFew, kMostBytes));
  levels.push_back(std::make_unique<Level>(10 * kFew, kMostBytes));
  levels.push_back(std::make_unique<Level>(100 * kFew, kMostBytesOfMany));
  const double clock = clock_ns();
  Figures figures;
  figures.set("clock", "ns", clock);
  for (int round = 0; round < arguments.rounds; ++round) {
    figures.least("mutex", "ns", mutex_pair_ns(kPairs));
    map.measure(figures);
    allocate_and_free(lifo, kWarmUp);
    figures.least("lifo_1000", "ns", ns_each(kPairs, [&] { allocate_and_free(lifo, kPairs); }));
    for (const std::unique_ptr<Level> &level : levels) level->measure(figures);
    levels.front()->measure_tail(figures, clock);
  }
  figures.report("alone", arguments.json);
}

}  // namespace

int main(int count, char **arguments) {
  return run_bench("alone", count, arguments, 100, run);
}
