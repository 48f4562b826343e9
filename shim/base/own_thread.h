// The threads that Ration itself runs in a process: few, nearly always asleep, and no business of the program's.
// Layer: base. Threads: any.
#pragma once

namespace ration {

// Runs run(argument), which makes itself an OwnThread, on a detached thread that gets no signal of the program's.
// Returns when it has, most likely: the program may forbid system calls next. False: no thread can be made.
bool start_own_thread(void *(*run)(void *), void *argument) noexcept;

class OwnThread {
 public:
  explicit OwnThread(const char *name) noexcept;  // of 15 characters at most
  OwnThread(const OwnThread &) = delete;
  OwnThread &operator=(const OwnThread &) = delete;

  // Whether the program's main thread has ended: the process ends when its other threads have, own ones among them.
  // Own threads are told before (preload/thread_end.cc), but not where that thread is cancelled or ends in libc: one
  // that sleeps must ask now and then, and end. True where that cannot be known. No system call, if that thread was the
  // first to start an own one.
  static bool is_main_thread_gone() noexcept;
};

}  // namespace ration
