// One process of several on a device. It says what it has, then verifies and frees its memory when its stdin ends.
//   member hold BYTES        member hold PERCENT%     allocates so much (PERCENT of the total)
//   member fill              allocates blocks of 64 MiB until it is refused
//   member take BYTES        tries until it is granted, at most 30 s; says so when it is first refused
//   member share PERCENT%    asks what is free, waits for a line on stdin, then allocates PERCENT of that
//   member obey              does what each line on stdin says: take BYTES, drop (the newest block), memory
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>

#include "device.h"

namespace {

using gpu::kMiB;
using gpu::say;
using Clock = std::chrono::steady_clock;

struct Memory {
  std::size_t free = 0, total = 0;
};

Memory memory() {
  Memory seen;
  MUST(cuMemGetInfo(&seen.free, &seen.total));
  return seen;
}

// The argument in bytes; a percentage is one of `whole`.
std::size_t bytes_of(const char *text, std::size_t whole) {
  const std::size_t number = std::strtoull(text, nullptr, 10);
  return std::strchr(text, '%') == nullptr ? number : whole / 100 * number;
}

void hold(gpu::Blocks &blocks, const char *amount) {
  const CUresult code = blocks.take_in_parts(bytes_of(amount, memory().total));
  say("code=" + std::to_string(code));
}

void fill(gpu::Blocks &blocks) {
  CUresult code = CUDA_SUCCESS;
  while (code == CUDA_SUCCESS) code = blocks.take(64 * kMiB);
  say("code=" + std::to_string(code));
}

void take(gpu::Blocks &blocks, const char *amount) {
  const std::size_t bytes = bytes_of(amount, memory().total);
  CUresult code = blocks.take(bytes);
  if (code != CUDA_SUCCESS) say("refused=" + std::to_string(code));
  const auto end = Clock::now() + std::chrono::seconds(30);
  while (code == CUDA_ERROR_OUT_OF_MEMORY && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    code = blocks.take(bytes);
  }
  say("code=" + std::to_string(code));
}

void share(gpu::Blocks &blocks, const char *amount) {
  const Memory seen = memory();
  say("free=" + std::to_string(seen.free));
  say("total=" + std::to_string(seen.total));
  std::getchar();
  const CUresult code = blocks.take_in_parts(bytes_of(amount, seen.free));
  say("code=" + std::to_string(code));
}

void obey(gpu::Blocks &blocks) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "memory") {
      const Memory seen = memory();
      say("free=" + std::to_string(seen.free));
      say("total=" + std::to_string(seen.total));
    } else if (line == "drop") {
      blocks.drop();
      say("held=" + std::to_string(blocks.held()));
    } else if (line.starts_with("take ")) {
      say("code=" + std::to_string(blocks.take(bytes_of(line.c_str() + std::strlen("take "), 0))));
    }
  }
}

}  // namespace

int main(int count, char **arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  gpu::use_device();
  gpu::Blocks blocks;
  say("pid=" + std::to_string(::getpid()));
  if (what == "hold" && count > 2) {
    hold(blocks, arguments[2]);
  } else if (what == "fill") {
    fill(blocks);
  } else if (what == "take" && count > 2) {
    take(blocks, arguments[2]);
  } else if (what == "share" && count > 2) {
    share(blocks, arguments[2]);
  } else if (what == "obey") {
    obey(blocks);
  } else {
    std::fprintf(stderr, "usage: member hold AMOUNT | fill | take AMOUNT | share PERCENT%% | obey\n");
    return 2;
  }
  say("held=" + std::to_string(blocks.held()));
  while (std::getchar() != EOF) {
  }
  const bool all_right = blocks.verify();
  blocks.free_all();
  say(all_right ? "ok" : "wrong bytes");
  return all_right ? 0 : 3;
}
