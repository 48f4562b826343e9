// churn [ROUNDS] [async]: four threads allocate, fill, verify and free blocks of many sizes, each in its own stream. A
// block is freed while the kernel that verifies it may still run, so that a block that is reused too early shows wrong
// words. Prints what does not depend on chance; exit status 3 where a word was wrong.
#include <cstring>
#include <thread>

#include "pattern.h"

namespace {

constexpr unsigned kThreads = 4, kMostLive = 16;

struct Block {
  void *address;
  std::size_t bytes;
  std::uint32_t seed;
};

class Worker {
 public:
  Worker(unsigned number, bool stream_ordered)
      : random_(number + 1), stream_ordered_(stream_ordered), counters_(new_counters()) {
    MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }

  void run(unsigned rounds) {
    for (unsigned i = 0; i < rounds; ++i) {
      const bool takes = live_.empty() || (live_.size() < kMostLive && random_.below(2) == 0);
      takes ? take() : give_back(random_.below(static_cast<std::uint32_t>(live_.size())));
    }
    while (!live_.empty()) give_back(0);
  }

  Counters seen() const { return read(counters_); }
  unsigned blocks() const { return blocks_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void take() {
    Block block = {nullptr, random_.bytes(2, 25), blocks_++ * kThreads + 1};
    bytes_ += block.bytes;
    MUST(stream_ordered_ ? cudaMallocAsync(&block.address, block.bytes, stream_)
                         : cudaMalloc(&block.address, block.bytes));
    fill(block.address, block.bytes, block.seed, stream_);
    live_.push_back(block);
  }

  void give_back(std::size_t which) {
    const Block block = live_[which];
    live_[which] = live_.back();
    live_.pop_back();
    verify(block.address, block.bytes, block.seed, counters_, stream_);
    MUST(stream_ordered_ ? cudaFreeAsync(block.address, stream_) : cudaFree(block.address));
  }

  Random random_;
  bool stream_ordered_;
  Counters *counters_;
  cudaStream_t stream_ = nullptr;
  std::vector<Block> live_;
  unsigned blocks_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

int main(int count, char **arguments) {
  const unsigned rounds = count > 1 ? static_cast<unsigned>(std::strtoul(arguments[1], nullptr, 10)) : 1500;
  const bool stream_ordered = count > 2 && std::strcmp(arguments[2], "async") == 0;
  std::vector<Worker> workers;
  for (unsigned i = 0; i < kThreads; ++i) workers.emplace_back(i, stream_ordered);
  std::vector<std::thread> threads;
  for (Worker &worker : workers) threads.emplace_back([&worker, rounds] { worker.run(rounds); });
  for (std::thread &thread : threads) thread.join();
  bool all_right = true;
  for (const Worker &worker : workers) {
    const Counters seen = worker.seen();
    std::printf("blocks=%u bytes=%zu wrong=%llu checksum=%016llx\n", worker.blocks(), worker.bytes(), seen.wrong,
                seen.sum);
    all_right = all_right && seen.wrong == 0;
  }
  return all_right ? 0 : 3;
}
