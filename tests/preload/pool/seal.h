// All access to some files' mappings taken away, so that whoever touches one is found out: the fault is noted with the
// call that its thread is in, and the mappings are open until that call is over.
// Layer: libc only. Threads: each with calls of its own. Owns: the handler of SIGSEGV.
#pragma once

namespace preload::pool {

// The mappings that there are by now of files below `folder`; how many. Once.
int find_mappings(const char *folder);
void seal();
void unseal();
// For a control: reads a byte of what is sealed.
void touch_sealed();

// One at a time on a thread.
class SealedCall {
 public:
  SealedCall();
  // What it touched is sealed again.
  void end();
  bool faulted() const { return faulted_; }
  // Nobody else had it open meanwhile, so nothing that was touched went unnoticed. Behind end().
  bool alone() const { return alone_; }

 private:
  unsigned long long openings_;
  bool faulted_ = false;
  bool alone_;
};

}  // namespace preload::pool
