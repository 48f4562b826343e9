// The seeds of the fuzzers, from patterns of use. make_corpus FOLDER writes FOLDER/pool and FOLDER/trace; --check
// FOLDER compares the files there. Add findings of a fuzzer under a name other than `seed_…`.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "command_text.h"
#include "pool/unit.h"

namespace {

using ration::pool::Command;
using ration::pool::kMaximumBytes;
using enum Command::Kind;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Deterministic everywhere (the constants are Knuth's MMIX).
class Random {
 public:
  std::uint64_t below(std::uint64_t end) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33) % end;
  }
  // From 1 << low to 1 << high, each octave equally likely.
  std::uint64_t size(std::uint64_t low, std::uint64_t high) {
    const std::uint64_t octave = low + below(high - low);
    return (std::uint64_t{1} << octave) + below(std::uint64_t{1} << std::min<std::uint64_t>(octave, 31));
  }

 private:
  std::uint64_t state_ = 42;
};

class Commands {
 public:
  Commands &add(Command::Kind kind, std::uint64_t number = 0) {
    text_ += ration::pool::text_of({kind, number});
    text_ += ++added_ % 16 == 0 ? '\n' : ' ';
    return *this;
  }
  Commands &add(std::uint64_t times, Command::Kind kind, std::uint64_t number = 0) {
    for (std::uint64_t turn = 0; turn < times; ++turn) add(kind, number);
    return *this;
  }
  [[nodiscard]] std::string text() const { return text_ + "\n"; }

 private:
  std::string text_;
  int added_ = 0;
};

using Shape = std::function<void(Commands &, Random &)>;

void steady(Commands &to, Random &random, std::uint64_t live, std::uint64_t high, Command::Kind end) {
  to.add(kAddSlab, 4 * kGiB);
  for (std::uint64_t block = 0; block < live; ++block) to.add(kAllocate, random.size(8, high));
  for (int turn = 0; turn < 60; ++turn) {
    to.add(end, random.below(live)).add(kAllocate, random.size(8, high));
    if (end == kRetire && turn % 8 == 7) to.add(8, kReclaim).add(kBecomeClean, 8);
  }
}

void training(Commands &to, Random &random) {
  to.add(kAddSlab, 8 * kGiB);
  for (int layer = 0; layer < 8; ++layer) to.add(3, kAllocate, 50 * kMiB);
  for (int step = 0; step < 3; ++step) {
    const std::uint64_t width = (1 + random.below(8)) * kMiB;
    for (int layer = 0; layer < 8; ++layer)
      to.add(kAllocate, 4 * width).add(kAllocate, width).add(kAllocate, 3 * width + 20);
    for (int layer = 0; layer < 8; ++layer) to.add(kAllocate, 2 * width).add(kRetire, 1).add(2, kRetire).add(kFree);
    to.add(24, kReclaim).add(kBecomeClean, 40);
  }
}

void serving(Commands &to, Random &random) {
  to.add(kAddSlab, 2 * kGiB);
  for (int request = 0; request < 24; ++request) {
    to.add(8, kAllocate, random.size(16, 24));
    if (request > 5) to.add(8, kFree, random.below(5) * 8);
  }
}

void exhaustion(Commands &to, Random &random) {
  to.add(kAddSlab, 512 * 24 + 700).add(12, kAllocate, 512).add(kAllocateLargest).add(3, kAllocate, 512);
  to.add(kAllocateLargest, Command::kMore).add(6, kFree, 3).add(kAllocateLargest).add(kAllocateLargest, 1);
  for (int turn = 0; turn < 40; ++turn) {
    to.add(kFree, random.below(12)).add(kAllocateLargest, random.below(3)).add(kAllocate, 512 + random.below(2000));
  }
}

void fragmentation(Commands &to, Random &random) {
  to.add(kAddSlab, kGiB);
  for (int block = 0; block < 40; ++block) to.add(kAllocate, random.size(12, 24));
  for (std::uint64_t block = 0; block < 20; ++block) to.add(kFree, block);
  for (int turn = 0; turn < 20; ++turn) to.add(kAllocateLargest, random.below(60)).add(kRetire, 1).add(kFreeSlab);
  to.add(kAllocateLargest, Command::kMore + 1).add(20, kReclaim, 5).add(2, kAllocateLargest);
}

void huge(Commands &to, Random &) {
  for (const int octave : {48, 47, 40, 33, 32}) to.add(kAddSlab, std::uint64_t{1} << octave);
  to.add(kAddSlab, kMaximumBytes + 1).add(kAddSlab, ~std::uint64_t{0}).add(kAddSlab, 0).add(kAddSlab, 511);
  for (const int octave : {47, 46, 47, 39, 32, 31, 48}) to.add(kAllocate, std::uint64_t{1} << octave);
  to.add(kAllocate, kMaximumBytes - 1).add(kAllocate, ~std::uint64_t{0}).add(kAllocate, ~std::uint64_t{511});
  to.add(4, kAllocateLargest).add(kAllocateLargest, Command::kMore + 2).add(3, kFree, 2).add(3, kRetire, 1);
  to.add(kAllocateLargest).add(kListSlabs, 9).add(5, kReclaim).add(4, kFreeSlab).add(2, kRemoveSlab, 1).add(kGiveBack);
}

void slabs_come_and_go(Commands &to, Random &random) {
  for (std::uint64_t turn = 0; turn < 20; ++turn) {
    to.add(kAddSlab, random.size(8, 30))
        .add(kAddSlabBeside, random.below(1 << 18))
        .add(kListSlabs, random.below(1 << 18));
    to.add(2, kAllocate, random.size(8, 20)).add(kFree, turn % 2).add(kRemoveSlab, random.below(8)).add(kFreeSlab);
    if (turn % 4 == 3) to.add(kGiveBack);
  }
}

void wrong_addresses(Commands &to, Random &random) {
  to.add(kAddSlab, kGiB);
  for (int turn = 0; turn < 40; ++turn) {
    to.add(kAllocate, random.size(0, 16))
        .add(kFreeAnything, random.below(1 << 18))
        .add(kRetireAnything, random.below(1 << 18));
    to.add(kReclaimAnything, random.below(1 << 18))
        .add(kFindAnything, random.below(1 << 18))
        .add(kListLive, random.below(1 << 18));
  }
}

void edges_of_sizes(Commands &to, Random &) {
  to.add(kAddSlab, 4 * kGiB).add(kReserve, 64);
  for (const std::uint64_t edge :
       {std::uint64_t{1}, std::uint64_t{512}, std::uint64_t{1024}, kMiB, 16 * kMiB, 32 * kMiB, 64 * kMiB}) {
    to.add(kAllocate, edge - 1)
        .add(kAllocate, edge)
        .add(kAllocate, edge + 1)
        .add(kFree, 1)
        .add(kAllocateLargest, 1)
        .add(kFree);
    to.add(kRetire).add(kAllocate, edge + edge / 8).add(kReclaim);
  }
}

// Fills the pool and empties it, newest or oldest block first.
void sawtooth(Commands &to, Random &random, bool from_the_oldest) {
  to.add(kAddSlab, 64 * kMiB);
  for (int turn = 0; turn < 4; ++turn) {
    for (int block = 0; block < 20; ++block) to.add(kAllocate, random.size(9, 22));
    for (std::uint64_t left = 20; left > 0; --left)
      to.add(turn % 2 == 0 ? kFree : kRetire, from_the_oldest ? left - 1 : 0);
    to.add(20, kReclaim, 3).add(kBecomeClean, 20);
  }
}

const std::map<std::string, Shape> kShapes = {
    {"lifo", [](Commands &to, Random &random) { sawtooth(to, random, false); }},
    {"fifo", [](Commands &to, Random &random) { sawtooth(to, random, true); }},
    {"steady_small", [](Commands &to, Random &random) { steady(to, random, 60, 13, kFree); }},
    {"steady_mixed", [](Commands &to, Random &random) { steady(to, random, 60, 26, kFree); }},
    {"steady_retired", [](Commands &to, Random &random) { steady(to, random, 40, 26, kRetire); }},
    {"equal_sizes", [](Commands &to, Random &random) { steady(to, random, 60, 9, kFree); }},
    {"training", training},
    {"serving", serving},
    {"exhaustion", exhaustion},
    {"fragmentation", fragmentation},
    {"huge", huge},
    {"slabs", slabs_come_and_go},
    {"wrong_addresses", wrong_addresses},
    {"edges", edges_of_sizes},
};

// Input of pool_replay.
void add_traces(std::map<std::string, std::string> &files) {
  const auto add = [&files](const std::string &name, const std::string &content) {
    files["trace/seed_" + name] = content;
  };
  add("trace", "# ration-trace 1\na 0 512\na 1 100\nf 0\na 0 4096\nf 1\n");
  add("trace_large", "a 4294967294 140737488355328\nf 4294967294\na 7 1\n");
  add("trace_wrong", "a 0 512\na 0 5\nf 9\nx\n");
}

std::map<std::string, std::string> seeds() {
  std::map<std::string, std::string> files;
  for (const auto &[name, shape] : kShapes) {
    Commands commands;
    Random random;
    shape(commands, random);
    files["pool/seed_" + name] = "p " + commands.text();
    files["pool/seed_" + name + "_shared"] = "s " + commands.text();
  }
  add_traces(files);
  return files;
}

}  // namespace

int main(int count, char **words) {
  const bool check = count == 3 && std::string_view(words[1]) == "--check";
  if (count != 2 && !check) {
    std::fprintf(stderr, "usage: make_corpus [--check] FOLDER\n");
    return EXIT_FAILURE;
  }
  const std::filesystem::path folder = words[count - 1];
  std::size_t same = 0;
  const std::map<std::string, std::string> files = seeds();
  for (const auto &[name, content] : files) {
    if (check) {
      std::ifstream stream(folder / name, std::ios::binary);
      const std::string there{std::istreambuf_iterator<char>(stream), {}};
      if (there != content) std::printf("%s is not what make_corpus writes\n", name.c_str());
      same += there == content ? 1 : 0;
      continue;
    }
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << content;
  }
  if (check) std::printf("covered: %zu of %zu\n", same, files.size());
  return check && same != files.size() ? EXIT_FAILURE : EXIT_SUCCESS;
}
