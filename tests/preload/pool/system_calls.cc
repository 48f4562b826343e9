#include "system_calls.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace preload::pool {

SystemCalls::SystemCalls() : server_([this] { serve(); }) {}

SystemCalls::~SystemCalls() {
  int none = kNotYet;
  listener_.compare_exchange_strong(none, kNever);
  server_.join();
}

bool SystemCalls::begin() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[3])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kNotTheCallers, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  const int listener =
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
          ? -1
          : static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
  listener_.store(listener >= 0 ? listener : kNever);  // without a wake-up, which would be a system call already
  return listener >= 0;
}

void SystemCalls::serve() {
  int listener = kNotYet;
  while ((listener = listener_.load()) == kNotYet) sched_yield();
  if (listener == kNever) return;
  for (;;) {
    pollfd ready{listener, POLLIN, 0};
    seccomp_notif call{};
    if (poll(&ready, 1, -1) != 1 || (ready.revents & POLLIN) == 0) break;  // the thread has ended
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    const int number = call.data.nr;
    if (number == SYS_sched_yield || number == SYS_nanosleep || number == SYS_clock_nanosleep) {
      waits_.fetch_add(1);
    } else {
      others_.fetch_add(1);
      last_.store(number);
    }
    seccomp_notif_resp answer{};
    answer.id = call.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  close(listener);
}

}  // namespace preload::pool
