// The threads that Ration itself runs in a process: they are few, nearly always asleep, and unnoticed by the program.
// Layer: base. Threads: any.
#pragma once

namespace ration {

// Starts a detached thread, which receives none of the program's signals, and calls run(argument) on it. `run` first
// constructs an OwnThread; this function waits up to 100 ms for that, because the program may forbid system calls right
// afterwards. Returns false if no thread can be created.
bool start_own_thread(void *(*run)(void *), void *argument) noexcept;

class OwnThread {
 public:
  explicit OwnThread(const char *name) noexcept;  // at most 15 characters
  OwnThread(const OwnThread &) = delete;
  OwnThread &operator=(const OwnThread &) = delete;

  // True if the program's main thread has ended. The process then ends only when all other threads have ended, so own
  // threads must end too. They are normally told to end (preload/thread_end.cc), but not if the main thread is
  // cancelled or ends inside libc, so a sleeping own thread must call this from time to time. Also true if the answer
  // cannot be determined. Makes no system call if the main thread was the first to start an own thread.
  static bool is_main_thread_gone() noexcept;
};

}  // namespace ration
