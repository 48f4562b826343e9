// The flags and locks that device work waits for. A program sets flags, and takes and releases locks. If a call in the
// program waits, the watch sets all flags and releases all locks. Layer: none. Threads: any.
#pragma once

#include <bitset>

namespace oracle {

inline constexpr int kMostFlags = 64;

// A piece of device work, which waits for the flag and then for the lock; -1: none.
struct Gate {
  int flag = -1;
  int lock = -1;
};

class Flags {
 public:
  void set(int flag);
  void lock(int lock);
  void unlock(int lock);
  void unlock_all();
  // Marks a flag as one that device work waits for.
  void await(const Gate &gate);
  // Opens all awaited flags and all locks. Returns false if there was nothing to open.
  bool release();
  // The awaited flags that are not yet set.
  std::bitset<kMostFlags> closed() const;
  void set_all(const std::bitset<kMostFlags> &which);
  // Called by device work.
  void pass(const Gate &gate);
};

Flags &flags();

}  // namespace oracle
