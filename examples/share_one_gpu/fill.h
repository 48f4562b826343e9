// What both programs do, the way a framework does it: plan for 90 % of the device, take it in large blocks, work, take
// the rest until refused, give everything back. Knows nothing of CUDA; each program brings its own Gpu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct Memory {
  std::uint64_t free = 0;
  std::uint64_t total = 0;
};

enum class Answer { kGranted, kOutOfMemory, kOtherError };

// One device through one API. Calls whose failure the programs have no use for end them by throwing.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual std::string name() = 0;
  virtual std::uint64_t total() = 0;  // the device's property
  virtual Memory memory() = 0;        // what is free right now
  virtual Answer allocate(std::uint64_t bytes, std::uint64_t &address) = 0;
  virtual void release(std::uint64_t address) = 0;
  virtual void write(std::uint64_t address, const void *from, std::size_t bytes) = 0;
  virtual void read(void *to, std::uint64_t address, std::size_t bytes) = 0;
};

// Fills `gpu` as the program NAME and prints one line a step; with its plan in hand, and again when full, it waits for
// a line (or the end) of stdin. 0, or 1 where something was not as a program may expect it.
int fill(const std::string &name, Gpu &gpu);
