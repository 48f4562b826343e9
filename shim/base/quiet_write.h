// Writes a message of Ration to a descriptor of the program. Layer: base. Threads: any; no lock.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <ctime>

namespace ration {

// Makes one write(2) and returns its result. A reader that is gone (SIGPIPE), or a file at RLIMIT_FSIZE (SIGXFSZ), must
// not end a program that never writes there itself. So a signal that this write causes is removed, but a signal that
// was already pending stays.
inline ssize_t write_quietly(int descriptor, const char *text, std::size_t bytes) noexcept {
  sigset_t caused;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&caused);
  sigaddset(&caused, SIGPIPE);
  sigaddset(&caused, SIGXFSZ);
  sigemptyset(&pending);
  sigprocmask(SIG_BLOCK, &caused, &before);  // for this thread; before glibc 2.32, pthread_sigmask was in libpthread
  if (sigismember(&before, SIGPIPE) != 0 || sigismember(&before, SIGXFSZ) != 0) {  // otherwise neither was pending
    sigpending(&pending);                                                          // a sandbox may forbid this call
  }
  const ssize_t written = write(descriptor, text, bytes);
  const int error = written < 0 ? errno : 0;
  const int signal = error == EPIPE ? SIGPIPE : SIGXFSZ;
  if ((error == EPIPE || error == EFBIG) && sigismember(&pending, signal) == 0) {
    sigemptyset(&caused);
    sigaddset(&caused, signal);
    constexpr timespec kAtOnce = {0, 0};
    sigtimedwait(&caused, nullptr, &kAtOnce);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    errno = error;
  }
  return written;
}

}  // namespace ration
