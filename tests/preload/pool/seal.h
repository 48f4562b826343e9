// Removes all access to the mappings of some files, to detect each touch. A touch is a fault, or a system call that
// asks whether an access would fault. It is noted for the call that the thread is making, and the mappings stay
// accessible until that call has ended.
// Layer: libc only. Threads: any, each for its own calls. Owns: the handler of SIGSEGV.
#pragma once

namespace preload::pool {

// Finds the present mappings of files below `folder`; returns their number. Call it once.
int find_mappings(const char *folder);
void seal();
void unseal();
// Reads a sealed byte, to test that the touch is noticed.
void touch_sealed();

// There may be at most one such object at a time on each thread.
class SealedCall {
 public:
  SealedCall();
  // Seals everything that the call touched again.
  void end();
  bool faulted() const { return faulted_; }
  // True if no other thread had the mappings open meanwhile, so that each touch was noticed. To be called after end().
  bool alone() const { return alone_; }

 private:
  unsigned long long openings_;
  bool faulted_ = false;
  bool alone_;
};

}  // namespace preload::pool
