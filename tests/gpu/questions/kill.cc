// After a process that holds 8 GiB was killed: how long until another one sees the memory free again? The same for one
// that ends by itself, and for memory that was exported as a file descriptor to the survivor.
#include <memory>
#include <thread>

#include "tests/gpu/questions/child.h"
#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

std::size_t held_bytes() {
  return std::min(8 * kGiB, free_bytes() / 2 / (32 * kMiB) * (32 * kMiB));
}

// Holds memory and waits to be killed, or for the word to end.
void hold(const std::string &kind) {
  const std::size_t bytes = held_bytes();
  CUdeviceptr block = 0;
  std::unique_ptr<Handles> handles;
  std::unique_ptr<Range> range;
  if (kind == "plain") {
    must(cuMemAlloc(&block, bytes));
    must(cuMemsetD8(block, 1, kGranule));
  } else if (kind == "pooled") {
    must(cuMemAllocAsync(&block, bytes, CU_STREAM_LEGACY));
  } else {
    const std::size_t each = kind == "granules" ? kGranule : 32 * kMiB;
    handles = std::make_unique<Handles>(each, bytes / each);
    range = std::make_unique<Range>(bytes);
    for (std::size_t i = 0; i < handles->count(); ++i) range->map(i * each, *handles, i);
    must(allow(range->at(), bytes));
    must(cuMemsetD8(range->at(), 1, kGranule));
  }
  must(cuCtxSynchronize());
  send(kParent, std::to_string(bytes));
  receive(kParent, 60'000);
  _exit(0);
}

// The free memory once it stands still: processes that ended before may still be returning theirs.
std::size_t settled_bytes() {
  std::size_t last = free_bytes();
  for (int unchanged = 0, tries = 0; unchanged < 10 && tries < 100; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::size_t now = free_bytes();
    unchanged = now == last ? unchanged + 1 : 0;
    last = now;
  }
  return last;
}

void measure(Test &test, const std::string &kind, bool killed) {
  constexpr double kMostUs = 5e6;
  const std::size_t before = settled_bytes();
  Child child({kind});
  const Message holding = receive(child.socket());
  if (holding.text.empty() || holding.text.find("stopped") == 0) skip("the child held nothing: " + holding.text);
  const std::size_t bytes = std::stoull(holding.text), during = free_bytes();
  if (during + bytes > before) skip("the memory of the other process is not that of this one's device");
  test.number("bytes", bytes);
  test.number("bytes_of_the_process", before - during);
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [begin] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  };
  killed ? child.kill() : send(child.socket(), "end");
  std::thread reaper([&child, killed, &test, since] {
    child.end(false);
    test.number("process_gone_after_ms", since() / 1000);
    test.yes("killed", killed);
  });
  double first_us = 0, all_us = 0;
  std::size_t now = during;
  while (since() < kMostUs && now < before - 16 * kMiB) {
    now = free_bytes();
    if (first_us == 0 && now > during + kMiB) first_us = since();
  }
  all_us = since();
  reaper.join();
  test.number("first_bytes_back_after_ms", first_us / 1000);
  test.number("all_back_after_ms", all_us / 1000);
  test.number("bytes_never_back", before - settled_bytes());
  test.note("From the signal until cuMemGetInfo of another process shows what it showed before, within 16 MiB.");
}

template <int kKind, bool kKilled>
void question_of(Test &test) {
  constexpr const char *kKinds[] = {"plain", "granules", "handles", "pooled"};
  measure(test, kKinds[kKind], kKilled);
}

}  // namespace

int main(int count, char **arguments) {
  if (count > 1) return question::run_child([&] { hold(arguments[1]); });
  return question::run({{"plain", question_of<0, true>},
                        {"handles_of_2MiB", question_of<1, true>},
                        {"handles_of_32MiB", question_of<2, true>},
                        {"pooled", question_of<3, true>},
                        {"plain_that_ends_by_itself", question_of<0, false>}});
}
