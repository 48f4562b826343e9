#include "fill.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kGrainBytes = 512;
constexpr std::uint64_t kLostBytes = 16 * kGrainBytes;  // rounding of blocks, and what an allocator keeps
constexpr std::uint64_t kNoAddress = 0x5eed;            // what a refused call must replace by 0
constexpr std::size_t kSampleBytes = 4096;              // written at the head and the tail of every block

struct Block {
  std::uint64_t address;
  std::uint64_t bytes;
};

class Filler {
 public:
  Filler(std::string name, Gpu &gpu) : name_(std::move(name)), gpu_(gpu) {}

  void run() {
    const Memory start = gpu_.memory();
    const std::uint64_t device = gpu_.total();
    say("sees " + gpu_.name() + " with total=" + std::to_string(device) + " free=" + std::to_string(start.free));
    expect(start.total == device, "the device's property and its memory query disagree");

    take_plan(device);
    say("holds " + std::to_string(held_) + " bytes in " + std::to_string(blocks_.size()) + " blocks");
    wait_for_a_line();
    verify_all();

    // A device that was completely free at the start is not shared, so nearly all of it must be allocatable.
    const bool is_own = start.free == device;
    take_rest(is_own);
    wait_for_a_line();
    verify_all();
    while (!blocks_.empty()) give_back_last();
    expect(!is_own || gpu_.memory().free + kLostBytes >= device, "not all memory came back");
    std::printf("%s total=%llu peak=%llu blocks=%zu ok\n", name_.c_str(), static_cast<unsigned long long>(device),
                static_cast<unsigned long long>(peak_), most_blocks_);
  }

 private:
  void say(const std::string &what) {
    std::printf("%s: %s\n", name_.c_str(), what.c_str());
    std::fflush(stdout);
  }

  static void expect(bool holds, const std::string &otherwise) {
    if (!holds) throw std::runtime_error(otherwise);
  }

  bool take(std::uint64_t bytes) {
    std::uint64_t address = kNoAddress;
    switch (gpu_.allocate(bytes, address)) {
      case Answer::kGranted:
        break;
      case Answer::kOutOfMemory:
        expect(address == 0, "a refused allocation left an address");
        return false;
      case Answer::kOtherError:
        throw std::runtime_error("an allocation failed with another code than out of memory");
    }
    blocks_.push_back({address, bytes});
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    most_blocks_ = std::max(most_blocks_, blocks_.size());
    write_samples(blocks_.size() - 1);
    return true;
  }

  void give_back_last() {
    gpu_.release(blocks_.back().address);
    held_ -= blocks_.back().bytes;
    blocks_.pop_back();
  }

  void take_plan(std::uint64_t device) {
    const std::uint64_t plan = device / 10 * 9;
    while (held_ < plan) {
      if (take(std::min(kBlockBytes, plan - held_))) continue;
      throw std::runtime_error("out of memory: planned " + std::to_string(plan) +
                               " bytes, 90 % of the device, and got " + std::to_string(held_));
    }
  }

  // Large blocks first, then ever smaller ones, down to the allocation granularity.
  void take_rest(bool is_own) {
    for (std::uint64_t bytes = kBlockBytes; bytes >= kGrainBytes; bytes /= 2) {
      while (take(bytes)) {
      }
    }
    expect(!take(kGrainBytes), "an allocation succeeded after the device was full");
    if (is_own) {
      expect(held_ <= gpu_.total(), "holds " + std::to_string(held_) + " bytes, more than the device has");
      expect(held_ + kLostBytes >= gpu_.total(), "full at " + std::to_string(held_) + " bytes already");
      expect(gpu_.memory().free <= kLostBytes, "free memory is left that cannot be allocated");
    }
    say("is full at " + std::to_string(held_) + " bytes: refused beyond it");
  }

  // Each block has its own sample, so that overlapping blocks and foreign writes are found.
  std::array<std::uint64_t, kSampleBytes / 8> sample(std::size_t index, std::size_t end) const {
    std::array<std::uint64_t, kSampleBytes / 8> words{};
    std::uint64_t seed = std::hash<std::string>{}(name_) ^ (index * 2 + end);
    for (std::uint64_t &word : words) word = seed = seed * 6364136223846793005u + 1442695040888963407u;
    return words;
  }

  template <typename Visit>
  void for_each_end(std::size_t index, Visit visit) {
    const Block &block = blocks_[index];
    const std::size_t bytes = static_cast<std::size_t>(std::min<std::uint64_t>(block.bytes, kSampleBytes));
    visit(block.address, sample(index, 0), bytes);
    if (block.bytes >= 2 * kSampleBytes) visit(block.address + block.bytes - bytes, sample(index, 1), bytes);
  }

  void write_samples(std::size_t index) {
    for_each_end(index, [this](std::uint64_t address, const auto &words, std::size_t bytes) {
      gpu_.write(address, words.data(), bytes);
    });
  }

  void verify_all() {
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
      for_each_end(index, [this, index](std::uint64_t address, const auto &words, std::size_t bytes) {
        auto found = words;
        found.fill(0);
        gpu_.read(found.data(), address, bytes);
        const auto *wanted = reinterpret_cast<const unsigned char *>(words.data());
        const auto *got = reinterpret_cast<const unsigned char *>(found.data());
        expect(std::equal(wanted, wanted + bytes, got), "block " + std::to_string(index) + " has wrong bytes");
      });
    }
  }

  // At the end of the input it never waits.
  static void wait_for_a_line() {
    for (int read = std::getchar(); read != '\n' && read != EOF;) read = std::getchar();
  }

  std::string name_;
  Gpu &gpu_;
  std::vector<Block> blocks_;
  std::uint64_t held_ = 0;
  std::uint64_t peak_ = 0;
  std::size_t most_blocks_ = 0;
};

}  // namespace

int fill(const std::string &name, Gpu &gpu) {
  try {
    Filler(name, gpu).run();
    return 0;
  } catch (const std::exception &failure) {
    std::printf("%s: FAILED: %s\n", name.c_str(), failure.what());
    return 1;
  }
}
