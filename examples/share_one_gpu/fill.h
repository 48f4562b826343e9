// The work of both programs, similar to a framework's: they allocate 90 % of the device in large blocks, use them,
// allocate the rest until refused, and free everything. It does not call CUDA; each program implements Gpu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct Memory {
  std::uint64_t free = 0;
  std::uint64_t total = 0;
};

enum class Answer { kGranted, kOutOfMemory, kOtherError };

// One device, used through one API. Calls whose failure the program cannot handle throw.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual std::string name() = 0;
  virtual std::uint64_t total() = 0;  // the device's property
  virtual Memory memory() = 0;        // free now
  virtual Answer allocate(std::uint64_t bytes, std::uint64_t &address) = 0;
  virtual void release(std::uint64_t address) = 0;
  virtual void write(std::uint64_t address, const void *from, std::size_t bytes) = 0;
  virtual void read(void *to, std::uint64_t address, std::size_t bytes) = 0;
};

// Fills `gpu` as the program `name` and prints one line for each step. After the first 90 %, and again when the device
// is full, the program waits for a line (or the end) of stdin. Returns 1 if a call misbehaved, else 0.
int fill(const std::string &name, Gpu &gpu);
