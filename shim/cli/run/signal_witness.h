// Tells a signal that was sent to the whole process group, which the command got too, from one that was sent to
// `ration` alone. The kernel does not say it: a second process of the group looks whether it gets the same.
// Layer: cli. Threads: the only one of the process.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>

namespace ration::cli {

// Design: design/settings.md#forwarded-signals
class SignalWitness {
 public:
  // REQUIRES: what shall be witnessed is blocked. Without a process or memory to be had it witnesses nothing.
  SignalWitness();
  ~SignalWitness();
  SignalWitness(const SignalWitness &) = delete;
  SignalWitness &operator=(const SignalWitness &) = delete;

  // Whether the group got the signal that we have just taken. Where it did not, waits for 20 ms: who sends to each
  // process of a control group does so one after the other.
  bool saw(int signal);

  struct Seen {  // what the witness writes
    std::array<std::atomic<std::uint64_t>, NSIG> last_ns{};
    std::atomic<int> answered{0};
  };

 private:
  [[nodiscard]] bool has_seen(int signal);
  void ask();

  Seen *seen_ = nullptr;
  std::array<std::uint64_t, NSIG> known_ns_{};
  int asked_ = 0;
  pid_t process_ = -1;
};

}  // namespace ration::cli
