// The objects of a program: contexts, streams, blocks and so on, by the numbers that it gives them. A program whose
// threads run side by side uses each object in one thread only. Layer: the driver API, stamp.h. Threads: see above.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // the exports' own names
#endif
#include <cuda.h>

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace oracle {

inline constexpr int kMost = 256;  // the most objects of a kind

enum class Life { kNone, kLive, kDead };

struct Context {
  Life life = Life::kNone;
  CUcontext handle = nullptr;
  CUdevice device = 0;
  bool primary = false;
  CUfunction gated = nullptr;  // the kernel that waits for a flag
};

struct Stream {
  Life life = Life::kNone;
  CUstream handle = nullptr;
  int context = -1;
};

// A queue of work. The handle of a default stream stands for one queue in each context, and the handle of the
// per-thread default stream for one queue in each context and thread.
struct Queue {
  explicit Queue(CUstream of);  // in the current context
  bool operator==(const Queue &) const = default;
  CUstream stream;
  CUcontext context = nullptr;
  pid_t thread = 0;
};

enum class Kind { kPlain, kManaged, kOrdered, kMapped };

struct Block {
  Life life = Life::kNone;
  Kind kind = Kind::kPlain;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  size_t marked = 0;                  // number of bytes at its start that have marks
  int context = -1;                   // with which the block ends; -1: none
  int home = -1;                      // where its marks are queued
  bool readable = false;              // its marks have been written
  std::vector<Queue> used_in;         // queues whose work on it may be unfinished
  std::vector<std::uint32_t> owners;  // the marks that its memory may show
};

struct Array {
  Life life = Life::kNone;
  void *handle = nullptr;
  bool mipmapped = false;
  int context = -1;
};

struct Pool {
  Life life = Life::kNone;
  CUmemoryPool handle = nullptr;
};

struct Physical {
  Life life = Life::kNone;
  CUmemGenericAllocationHandle handle = 0;
  size_t bytes = 0;
  CUdevice device = 0;
};

// Objects of a kind, by number.
template <class Object>
class Numbered {
 public:
  Object &operator[](int number) { return all_[static_cast<size_t>(number)]; }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

 private:
  std::array<Object, kMost> all_;
};

struct Objects {
  Numbered<Context> contexts;
  Numbered<Stream> streams;
  Numbered<Block> blocks;
  Numbered<Array> arrays;
  Numbered<Pool> pools;
  Numbered<Physical> physical;
  bool numbers_return = false;  // the number of a block that has ended may be reused for another block
};

Objects &objects();

// The number of the current context; -1 if there is none or if the program has not created it.
int current_context();
// True if another block contains the address. A freed block also counts if its free may still be queued.
bool is_of_another(const Block &block, CUdeviceptr address);
// Forgets the finished work on a block. Returns true if all unfinished work on it is in `queue`.
bool used_only_in(Block &block, const Queue &queue);
// True if no work that uses the block is queued.
bool unused(Block &block);
// To be called after a context has ended; ends its blocks, arrays and streams too.
void end_with(int context);

}  // namespace oracle
