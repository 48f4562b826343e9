// Cost of several threads on one pool of a thousand live blocks, of which each thread replaces its own share: the time
// from the first start to the last end, per pair of one thread. Medians: lock contention differs from round to round,
// and the minimum of many rounds would be one without contention.
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
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
constexpr std::size_t kPairs = 5'000;  // of each thread

std::vector<int> processors() {
  std::vector<int> processors;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) processors.push_back(cpu);
  }
  return processors;
}

// Without pinning, a thread that migrates would measure the scheduler.
void stay_on(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

// Busy seconds of `processors` since the machine started, steal included, with the resolution of a clock tick.
double busy_seconds(const std::vector<int> &processors) {
  std::ifstream file("/proc/stat");
  double ticks = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    const bool ours = std::any_of(processors.begin(), processors.end(),
                                  [&](int processor) { return name == "cpu" + std::to_string(processor); });
    double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0, steal = 0;
    if (ours && fields >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq >> steal) {
      ticks += user + nice + system + irq + soft_irq + steal;
    }
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Processor time used by other processes during its life.
class Others {
 public:
  explicit Others(const std::vector<int> &processors) : processors_(processors) {}
  [[nodiscard]] double percent() const {
    const double seconds = ns_between(begin_, Clock::now()) / 1e9 * static_cast<double>(processors_.size());
    const double taken = busy_seconds(processors_) - busy_ - (own_seconds() - own_);
    return seconds > 0 ? std::max(0.0, taken / seconds * 100) : 0;
  }

 private:
  const std::vector<int> processors_;
  const Clock::time_point begin_ = Clock::now();
  const double busy_ = busy_seconds(processors_);
  const double own_ = own_seconds();
};

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
      shares_.back()->replace(churn.steps.size() / 8);
    }
  }

  double pair_ns() {
    std::vector<Turn> turns(shares_.size());
    std::atomic<std::size_t> ready{0};
    {
      std::vector<std::jthread> running;
      for (std::size_t i = 0; i < shares_.size(); ++i) {
        running.emplace_back([&, i] {
          if (!processors_.empty()) stay_on(processors_[i % processors_.size()]);
          ready.fetch_add(1);
          while (ready.load() != shares_.size()) sched_yield();  // a sleeping thread would start late
          turns[i].begin = Clock::now();
          shares_[i]->replace(kPairs);
          turns[i].end = Clock::now();
        });
      }
    }
    const auto begin = std::min_element(turns.begin(), turns.end(), [](auto &a, auto &b) { return a.begin < b.begin; });
    const auto end = std::max_element(turns.begin(), turns.end(), [](auto &a, auto &b) { return a.end < b.end; });
    return ns_between(begin->begin, end->end) / static_cast<double>(kPairs);
  }

 private:
  struct Turn {
    Clock::time_point begin;
    Clock::time_point end;
  };
  const std::vector<int> processors_;
  std::vector<Churn> churns_;
  std::unique_ptr<PoolMemory> memory_;
  std::vector<std::unique_ptr<Replacer<PoolMemory>>> shares_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void run(const Arguments &arguments) {
  const std::vector<int> available = processors();
  const unsigned sizes[] = {1, 2, 4, 8};
  std::vector<std::unique_ptr<Crowd>> crowds;
  for (const unsigned threads : sizes) crowds.push_back(std::make_unique<Crowd>(threads, available));
  std::vector<std::vector<double>> rounds(crowds.size());
  const Others others(available);
  for (int round = 0; round < arguments.rounds; ++round) {
    for (std::size_t i = 0; i < crowds.size(); ++i) rounds[i].push_back(crowds[i]->pair_ns());
  }
  Figures figures;
  figures.set("others", "%", others.percent());
  figures.set("processors", "", static_cast<double>(available.size()));
  for (std::size_t i = 0; i < crowds.size(); ++i) {
    figures.set("threads_" + std::to_string(sizes[i]), "ns", median(rounds[i]));
  }
  figures.report("threads", arguments.json);
}

}  // namespace

int main(int count, char **arguments) {
  return run_bench("threads", count, arguments, 150, run);
}
