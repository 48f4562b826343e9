// Patterns of use: nearly all of the limit again and again, frees on an idle device before work begins, locks that host
// functions need, work on another device, requests that cannot be served, contexts that end.
#include <algorithm>

#include "tests/oracle/maker.h"

namespace oracle {
namespace {

std::string some_api(Maker &maker) {
  const unsigned which = maker.below(100);
  return which < 60 ? "alloc" : which < 70 ? "pitch" : which < 80 ? "managed" : "alloc_async";
}

std::string some_free(Maker &maker) {
  return maker.chance(80) ? "free" : "free_async";
}

void free_some(Maker &maker, std::vector<int> numbers, unsigned percent) {
  while (!numbers.empty()) {
    const size_t index = maker.below(static_cast<unsigned>(numbers.size()));
    if (maker.chance(percent)) maker.free(numbers[index], some_free(maker));
    numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

// n blocks of a size that fills what is left, some freed, and the same sizes again.
void fill_and_refill(Maker &maker) {
  const unsigned count = 1 + maker.below(maker.chance(80) ? 5 : 24);
  const std::uint64_t each = maker.room() / count / (maker.chance(70) ? 512 : 1) * (maker.chance(70) ? 512 : 1);
  const std::uint64_t bytes = std::min(each, maker.room() / count);
  if (bytes == 0) return;
  std::vector<int> numbers;
  for (unsigned i = 0; i < count; ++i) numbers.push_back(maker.allocate(bytes));
  const bool busy = maker.chance(40);
  if (busy) maker.gate(maker.some_stream());
  const int rounds = 1 + static_cast<int>(maker.below(3));
  for (int round = 0; round < rounds; ++round) {
    const int freed = numbers[maker.below(count)];
    if (freed < 0 || !maker.blocks[static_cast<size_t>(freed)].live) continue;
    maker.free(freed, some_free(maker));
    if (maker.chance(20)) maker.step("sync");
    numbers.push_back(maker.allocate(bytes, maker.chance(80) ? "alloc" : "managed"));
    std::erase(numbers, freed);
    if (numbers.size() < count) return;
  }
  if (maker.chance(60)) free_some(maker, numbers, 80);
  if (maker.chance(40)) maker.set_some_flag();
}

// Equal blocks that fill what is left, then, once none of them is live, equal blocks of another size.
void fill_in_turn(Maker &maker) {
  const int turns = 2 + static_cast<int>(maker.below(3));
  for (int turn = 0; turn < turns; ++turn) {
    const unsigned count = 1 + maker.below(maker.chance(80) ? 8 : 40);
    const std::uint64_t bytes = maker.room() / count / 512 * 512;
    if (bytes == 0) return;
    std::vector<int> numbers;
    for (unsigned i = 0; i < count; ++i) numbers.push_back(maker.allocate(bytes));
    if (std::count(numbers.begin(), numbers.end(), -1) != 0) return;
    free_some(maker, numbers, 100);
    if (maker.chance(50)) maker.step("sync");
  }
}

// Blocks freed on an idle device, then work, then an allocation.
void free_then_work(Maker &maker) {
  const std::string stream = maker.some_stream();
  const int first = maker.allocate(maker.size(true), some_api(maker));
  if (first < 0) return;
  if (maker.chance(30)) maker.allocate(maker.size(true), some_api(maker));
  if (maker.blocks[static_cast<size_t>(first)].live) maker.free(first, some_free(maker));
  if (maker.chance(30)) maker.step("sync");
  maker.gate(stream);
  if (maker.chance(50)) maker.allocate(maker.blocks[static_cast<size_t>(first)].bytes, some_api(maker));
  maker.allocate(maker.size(true), some_api(maker));
  if (maker.chance(50)) maker.set_some_flag();
}

// Work that uses a block, the block's free after it, and the memory's next owner.
void free_behind_work(Maker &maker) {
  const int number = maker.allocate(maker.size(true), some_api(maker));
  if (number < 0) return;
  const std::string stream = maker.some_stream();
  maker.gate(stream);
  maker.step("fill b" + std::to_string(number) + " " + stream);
  if (maker.chance(40)) maker.gate(maker.some_stream());
  if (maker.blocks[static_cast<size_t>(number)].live) maker.free(number, some_free(maker));
  const int next = maker.allocate(maker.blocks[static_cast<size_t>(number)].bytes, some_api(maker));
  if (next < 0) return;
  if (maker.chance(50)) maker.set_some_flag();
  maker.step("check b" + std::to_string(next));
}

// A host function needs a lock that the program takes after its free.
void lock_after_free(Maker &maker) {
  const int number = maker.allocate(maker.room() * (30 + maker.below(70)) / 100 + 1);
  if (number < 0) return;
  const int flag = maker.next_flag++ % 64;
  const std::string gate = " f" + std::to_string(flag) + " l" + std::to_string(flag);
  maker.step("host_function " + maker.some_stream() + gate);
  const std::uint64_t bytes = maker.blocks[static_cast<size_t>(number)].bytes;
  if (maker.blocks[static_cast<size_t>(number)].live) maker.free(number);
  maker.step("lock l" + std::to_string(flag));
  maker.allocate(bytes, some_api(maker));
  maker.step("unlock l" + std::to_string(flag));
}

void work_on_the_other_device(Maker &maker) {
  if (maker.devices < 2 || maker.context() < 0) return;
  const int here = maker.context();
  const int there = maker.make_context(1 - maker.device(), maker.chance(50));
  const std::string stream = maker.some_stream();
  maker.gate(stream);
  if (maker.chance(50)) {  // that uses a block of the first one, by a copy of either direction, or may use any
    const int number = maker.allocate(maker.size(true) / 8);
    const std::vector<int> live = maker.live_blocks();
    switch (maker.below(number >= 0 && live.size() > 1 ? 4 : 1)) {
      case 0:
        maker.step("peer c" + std::to_string(here));
        break;
      case 1:
        if (!live.empty()) maker.step("fetch b" + std::to_string(maker.one_of(live)) + " " + stream);
        break;
      case 2:
        maker.step("copy b" + std::to_string(maker.one_of(live)) + " b" + std::to_string(number) + " " + stream);
        break;
      default:
        maker.step("copy b" + std::to_string(number) + " b" + std::to_string(maker.one_of(live)) + " " + stream);
    }
  }
  maker.use(here);
  fill_and_refill(maker);
  if (maker.chance(30)) maker.use(there);
}

void cannot_be_served(Maker &maker) {
  const std::uint64_t bytes = maker.room();
  const int number = maker.allocate(bytes * (50 + maker.below(45)) / 100 / 512 * 512 + 512);
  if (number < 0) return;
  maker.allocate(maker.room() / 2 + 1, some_api(maker));
  if (maker.chance(50)) free_some(maker, maker.live_blocks(), 30);
  maker.gate(maker.some_stream());
  maker.allocate(maker.room() + 1 + maker.below(1000) * 1000, maker.chance(80) ? "alloc" : "managed");
}

void context_ends(Maker &maker) {
  if (maker.context() < 0) return;
  const int before = maker.context();
  const int made = maker.make_context(maker.device(), false);
  const std::uint64_t bytes = maker.size(true);
  maker.allocate(bytes, some_api(maker));
  if (maker.chance(30)) maker.gate(maker.some_stream());
  if (maker.chance(40)) maker.use(before);
  if (maker.chance(50)) maker.allocate(maker.size(true), some_api(maker));
  maker.end_context(made);
  if (maker.chance(80)) {
    maker.use(before);
    maker.allocate(bytes, some_api(maker));
  } else {
    maker.allocate(maker.size(true));
  }
}

}  // namespace

void add_scenes(Maker &maker) {
  const int count = 1 + static_cast<int>(maker.below(3));
  if (maker.chance(40)) maker.line("late");
  for (int i = 0; i < count; ++i) {
    if (maker.threads > 1) maker.turn(static_cast<int>(maker.below(static_cast<unsigned>(maker.threads))));
    switch (maker.below(11)) {
      case 0:
      case 1:
        fill_and_refill(maker);
        break;
      case 2:
        free_then_work(maker);
        break;
      case 3:
        free_behind_work(maker);
        break;
      case 4:
        lock_after_free(maker);
        break;
      case 5:
        work_on_the_other_device(maker);
        break;
      case 6:
        cannot_be_served(maker);
        break;
      case 7:
        context_ends(maker);
        break;
      case 8:
        fill_in_turn(maker);
        break;
      default:
        add_mixture(maker, 3 + static_cast<int>(maker.below(12)));
    }
    free_some(maker, maker.live_blocks(), maker.chance(70) ? 50 : 100);
  }
}

// Threads that each take and return the same blocks; all that they ever hold at once fits the limit.
void make_together(Maker &maker) {
  const unsigned threads = 2 + maker.below(6);
  maker.line("together " + std::to_string(20 + maker.below(100)));
  const unsigned each = 1 + maker.below(3);
  const std::uint64_t share = maker.limit() / threads / each / 512 * 512;
  const bool uses_all = maker.chance(40);
  const bool own_contexts = maker.chance(30);
  for (unsigned thread = 0; thread < threads; ++thread) {
    const std::string at = "t" + std::to_string(thread) + " ";
    const std::string number = std::to_string(thread);
    maker.line(at + (own_contexts ? "create c" : "retain c") + number + " 0");
    maker.line(at + "use c" + number);
    maker.line(at + "stream s" + number + " nonblocking");
    const std::uint64_t bytes = uses_all ? share : std::max<std::uint64_t>(1, share * (20 + maker.below(78)) / 100);
    for (unsigned i = 0; i < each; ++i) {
      const std::string block = "b" + std::to_string(thread * 8 + i);
      maker.line(at + (maker.chance(85) ? "alloc " : "managed ") + block + " " + std::to_string(bytes));
      if (maker.chance(60)) maker.line(at + "fill " + block + (maker.chance(70) ? " s" + number : " default"));
    }
    for (unsigned i = 0; i < each; ++i) maker.line(at + "free b" + std::to_string(thread * 8 + (each - 1 - i)));
  }
}

}  // namespace oracle
