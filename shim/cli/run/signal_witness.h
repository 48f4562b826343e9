// Finds out whether a signal was sent to the whole process group, and thus also to the command, or only to `ration`.
// The kernel does not say, so a second process in the group watches whether it receives the signal as well.
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
  // REQUIRES: the signals to witness are blocked. If no process or memory is available, no signal is witnessed.
  SignalWitness();
  ~SignalWitness();
  SignalWitness(const SignalWitness &) = delete;
  SignalWitness &operator=(const SignalWitness &) = delete;

  // True if the whole group got the signal that we have just taken. Waits up to 20 ms for the witness, because a sender
  // that signals all processes of a control group does so one at a time.
  bool saw(int signal);

  struct Seen {  // written by the witness
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
