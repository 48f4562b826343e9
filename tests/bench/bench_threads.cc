// What several threads pay on one pool of a thousand live blocks, each replacing its own share of them: the time from
// the common start to the end of the last thread, by pairs of one thread; in turns, the least of many rounds.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "churn.h"
#include "measured.h"
#include "paired.h"
#include "pool_memory.h"

using namespace ration::bench;

namespace {

constexpr std::uint32_t kLive = 1'000;
constexpr std::size_t kPairs = 20'000;  // of each thread

std::vector<int> processors() {
  std::vector<int> processors;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) processors.push_back(cpu);
  }
  return processors;
}

// A thread that the scheduler moves meanwhile would say more about the scheduler.
void stay_on(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

class Crowd {
 public:
  Crowd(unsigned threads, std::vector<int> processors) : processors_(std::move(processors)) {
    std::uint64_t peak_bytes = 0;
    for (unsigned i = 0; i < threads; ++i) {
      churns_.push_back(draw_churn(kLive / threads, kMostBytes, i + 1));
      peak_bytes += churns_.back().peak_bytes;
    }
    memory_ = std::make_unique<PoolMemory>(PoolMemory::slab_bytes_for(peak_bytes));
    for (const Churn &churn : churns_) {
      shares_.push_back(std::make_unique<Replacer<PoolMemory>>(*memory_, churn));
      shares_.back()->replace(kPairs);
    }
  }

  double pair_ns() {
    Clock::time_point begin, end;
    std::barrier start(static_cast<std::ptrdiff_t>(shares_.size()), [&]() noexcept { begin = Clock::now(); });
    std::barrier stop(static_cast<std::ptrdiff_t>(shares_.size()), [&]() noexcept { end = Clock::now(); });
    {
      std::vector<std::jthread> running;
      for (std::size_t i = 0; i < shares_.size(); ++i) {
        running.emplace_back([&, i] {
          if (!processors_.empty()) stay_on(processors_[i % processors_.size()]);
          start.arrive_and_wait();
          shares_[i]->replace(kPairs);
          stop.arrive_and_wait();
        });
      }
    }
    return ns_between(begin, end) / static_cast<double>(kPairs);
  }

 private:
  const std::vector<int> processors_;
  std::vector<Churn> churns_;
  std::unique_ptr<PoolMemory> memory_;
  std::vector<std::unique_ptr<Replacer<PoolMemory>>> shares_;
};

void run(const Arguments &arguments) {
  const std::vector<int> available = processors();
  std::vector<std::unique_ptr<Crowd>> crowds;
  const unsigned sizes[] = {1, 2, 4, 8};
  for (const unsigned threads : sizes) crowds.push_back(std::make_unique<Crowd>(threads, available));
  std::vector<std::vector<double>> rounds(crowds.size());
  for (int round = 0; round < arguments.rounds; ++round) {
    for (std::size_t i = 0; i < crowds.size(); ++i) rounds[i].push_back(crowds[i]->pair_ns());
  }
  Figures figures;
  figures.set("processors", "", static_cast<double>(available.size()));
  for (std::size_t i = 0; i < crowds.size(); ++i) {
    const std::string name = "threads_" + std::to_string(sizes[i]);
    std::sort(rounds[i].begin(), rounds[i].end());
    figures.set(name, "ns", rounds[i].front());
    figures.set(name + "_median", "ns", rounds[i][rounds[i].size() / 2]);
  }
  figures.report("threads", arguments.json);
}

}  // namespace

int main(int count, char **arguments) {
  try {
    run(read_arguments(count, arguments, 30));
    return 0;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "bench_threads: %s\n", failure.what());
    return 1;
  }
}
