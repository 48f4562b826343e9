// every_hit FOLDER THREADS LIVE MOST PAIRS COUNT [touch|call|allocate]: each of the THREADS replaces blocks of 512
// bytes to MOST MiB, log-uniform, of which LIVE are live, PAIRS times, and frees all of them at times; the mappings of
// files in FOLDER are sealed, and each call is checked for what it touched. COUNT 1: and for system calls. A quarter of
// the blocks are pitched. touch, call, allocate: controls, in which hits do just that. Runs over a core that
// has recorder.cc in it.
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <latch>
#include <memory>
#include <utility>
#include <vector>

#include "host_allocations.h"
#include "recorder.h"
#include "seal.h"
#include "system_calls.h"
#include "tests/shapes/random.h"
#include "verdict.h"

namespace {

using namespace preload::pool;

constexpr unsigned kBurstEvery = 16;  // times LIVE
constexpr unsigned kMostComplaints = 5;

enum class Control { none, touch, call, allocate } control = Control::none;
struct Recorded {
  bool served = false;
  bool due = false;
  bool published = false;
};
thread_local Recorded seen;

struct Totals {
  unsigned long long calls = 0, hits = 0, unnoticed = 0, due = 0, published = 0, faulted = 0, asked = 0,
                     asked_at_free = 0, waited = 0, complaints = 0;
  void add(const Totals &more) {
    for (const auto figure :
         {&Totals::calls, &Totals::hits, &Totals::unnoticed, &Totals::due, &Totals::published, &Totals::faulted,
          &Totals::asked, &Totals::asked_at_free, &Totals::waited, &Totals::complaints}) {
      this->*figure += more.*figure;
    }
  }
};

class Worker {
 public:
  Worker(CUcontext context, unsigned live, unsigned octaves, bool counting, unsigned seed, Verdict &verdict)
      : context_(context), octaves_(octaves), blocks_(live), random_(seed), verdict_(verdict) {
    if (counting) system_calls_ = std::make_unique<SystemCalls>();
  }
  // `warm`: all threads are warmed up; `sealed`: and the mappings are sealed.
  void run(unsigned pairs, std::latch &warm, std::latch &sealed) {
    verdict_.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context_));
    replace(pairs / 4);
    warm.arrive_and_wait();
    sealed.wait();
    watched_ = true;
    if (system_calls_ != nullptr && !system_calls_->begin()) verdict_.fail(kNothingTested);
    replace(pairs);
    free_all();
    fill();  // what is used now has risen by allocations alone
    watched_ = false;
  }
  const Totals &totals() const { return totals_; }
  unsigned long long live_bytes() const {
    unsigned long long sum = 0;
    for (const Block &block : blocks_) sum += block.bytes;
    return sum;
  }

 private:
  struct Block {
    CUdeviceptr address = 0;
    size_t bytes = 0;
  };

  void replace(unsigned pairs) {
    for (unsigned i = 0; i < pairs && !verdict_.failed(); ++i) {
      if (i % (kBurstEvery * blocks_.size()) == 0) free_all();
      Block &block = blocks_[random_.between(0, blocks_.size() - 1)];
      free(block);
      allocate(block);
    }
    fill();
  }
  void fill() {
    for (Block &block : blocks_) {
      if (block.address == 0) allocate(block);
    }
  }
  void free_all() {
    for (size_t left = blocks_.size(); left > 0; --left) {
      std::swap(blocks_[random_.between(0, left - 1)], blocks_[left - 1]);
      free(blocks_[left - 1]);
    }
  }
  void free(Block &block) {
    if (block.address == 0) return;
    call("cuMemFree", [&] { return cuMemFree_v2(block.address); });
    block = {};
  }
  void allocate(Block &block) {
    block.bytes = random_.log_uniform(512, octaves_) / 512 * 512;
    if (random_.between(0, 3) != 0) {
      call("cuMemAlloc", [&] { return cuMemAlloc_v2(&block.address, block.bytes); });
      return;
    }
    const size_t rows = block.bytes % 1024 == 0 ? 2 : 1;
    size_t pitch = 0;
    call("cuMemAllocPitch", [&] { return cuMemAllocPitch_v2(&block.address, &pitch, block.bytes / rows, rows, 16); });
  }

  template <class Call>
  void call(const char *name, const Call &call) {
    if (!watched_) {
      verdict_.succeeded(name, call());
      return;
    }
    seen = {};
    const SystemCalls::Counts before = system_calls();
    const unsigned long long allocated = host_allocations();
    SealedCall sealed;
    const CUresult code = call();
    if (seen.served && !seen.due && host_allocations() != allocated) {
      complain(name, "was a hit and called malloc, times", static_cast<int>(host_allocations() - allocated));
    }
    const SystemCalls::Counts after = system_calls();
    sealed.end();
    verdict_.succeeded(name, code);
    judge(name, sealed, after.waits - before.waits, after.others - before.others, after.last);
  }
  void judge(const char *name, const SealedCall &sealed, unsigned long long waits, unsigned long long others,
             int last) {
    const bool hit = seen.served && !seen.due;
    ++totals_.calls;
    totals_.hits += hit ? 1 : 0;
    totals_.unnoticed += hit && !sealed.alone() ? 1 : 0;
    totals_.due += seen.due ? 1 : 0;
    totals_.published += seen.published ? 1 : 0;
    totals_.faulted += sealed.faulted() ? 1 : 0;
    // The rest: requests for which the pool had no room, and frees of blocks that it could not serve again.
    const bool asked = sealed.faulted() && !seen.published;
    const bool frees = strcmp(name, "cuMemFree") == 0;
    (frees ? totals_.asked_at_free : totals_.asked) += asked ? 1 : 0;
    totals_.waited += hit && waits > 0 ? 1 : 0;
    // The fast path leaves the ledger alone; the test bounds how many frees ask.
    if (sealed.faulted() && seen.served && !frees) complain(name, "was served and touched the ledger", last);
    if (!sealed.faulted() && seen.published && sealed.alone()) complain(name, "published and touched nothing", last);
    if (seen.published && seen.served) complain(name, "was served and published", last);
    if (hit && others > 0) complain(name, "was a hit and made a system call, number", last);
  }
  void complain(const char *name, const char *what, int number) {
    if (++totals_.complaints <= kMostComplaints) dprintf(1, "%s %s (%d)\n", name, what, number);
    verdict_.fail(kOtherFailure);
  }
  SystemCalls::Counts system_calls() const {
    return system_calls_ != nullptr ? system_calls_->counts() : SystemCalls::Counts{};
  }

  const CUcontext context_;
  const unsigned octaves_;
  std::vector<Block> blocks_;
  ration::shapes::Random random_;
  Verdict &verdict_;
  std::unique_ptr<SystemCalls> system_calls_;
  bool watched_ = false;
  Totals totals_;
};

}  // namespace

void preload_record(Seen what) noexcept {
  seen.served |= what == Seen::served;
  seen.due |= what == Seen::due;
  seen.published |= what == Seen::published;
  if (what == Seen::served && control == Control::touch) touch_sealed();
  if (what == Seen::served && control == Control::call) getppid();
  if (what == Seen::served && control == Control::allocate) ::operator delete(::operator new(1));
}

int main(int argc, char **argv) {
  if (argc < 7) return kOtherFailure;
  const auto number = [&](int at) { return static_cast<unsigned>(strtoul(argv[at], nullptr, 10)); };
  const unsigned octaves = 32 - static_cast<unsigned>(__builtin_clz(number(4))) - 1 + 11;  // from 512 bytes to MiB
  Verdict verdict;
  CUcontext context = nullptr;
  if (!verdict.succeeded("cuInit", cuInit(0)) || !verdict.succeeded("cuCtxCreate", cuCtxCreate_v2(&context, 0, 0))) {
    return verdict.status();
  }
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < number(2); ++i) {
    workers.push_back(std::make_unique<Worker>(context, number(3), octaves, number(6) != 0, i + 1, verdict));
  }
  std::latch warm(number(2) + 1);
  std::latch sealed(1);
  std::vector<std::thread> threads;
  for (const auto &worker : workers) {
    threads.emplace_back([&, worker = worker.get()] { worker->run(number(5), warm, sealed); });
  }
  warm.arrive_and_wait();
  if (find_mappings(argv[1]) == 0) verdict.fail(kNothingTested);
  control = argc < 8                        ? Control::none
            : strcmp(argv[7], "touch") == 0 ? Control::touch
            : strcmp(argv[7], "call") == 0  ? Control::call
                                            : Control::allocate;
  seal();
  sealed.count_down();
  for (std::thread &thread : threads) thread.join();
  control = Control::none;
  unseal();
  Totals totals;
  unsigned long long live = 0;
  for (const auto &worker : workers) {
    totals.add(worker->totals());
    live += worker->live_bytes();
  }
  dprintf(1,
          "calls=%llu hits=%llu unnoticed=%llu due=%llu published=%llu faulted=%llu asked=%llu "
          "asked_at_free=%llu waited=%llu live=%llu\n",
          totals.calls, totals.hits, totals.unnoticed, totals.due, totals.published, totals.faulted, totals.asked,
          totals.asked_at_free, totals.waited, live);
  char byte = 0;
  if (read(0, &byte, 1) < 0) verdict.fail(kOtherFailure);  // until the test has looked at this process
  return verdict.status();
}
