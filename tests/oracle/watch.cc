#include "tests/oracle/watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/oracle/flags.h"
#include "tests/oracle/stillness.h"

namespace oracle {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{1};
constexpr milliseconds kOwed{3};  // how long a call waits before it gets what the program is owed
constexpr milliseconds kHopeless{8000};

struct Call {
  long number = 0;
  bool running = false;
  bool waited_natively = false;
  bool late = false;
  bool waits = false;  // it needed a release that it does not need natively
  Clock::time_point since;
};

std::mutex mutex;
Call call;
std::bitset<kMostFlags> owed;  // natively these have been set
int patience = 0;
void (*on_hung)() = nullptr;

// Natively: a call in a process where every other thread sleeps returns only if someone acts.
void look_natively(std::unique_lock<std::mutex> &guard) {
  const long number = call.number;
  guard.unlock();
  const bool stuck = others_sleep();
  guard.lock();
  if (!stuck || !call.running || call.number != number) return;
  if (flags().release()) call.waits = true;
}

void look_with_patience() {
  const auto elapsed = Clock::now() - call.since;
  if (call.waited_natively) {
    flags().release();
  } else if (owed.any()) {
    if (elapsed < kOwed) return;
    flags().set_all(owed);
    owed.reset();
    call.since = Clock::now();
  } else if (!call.waits && elapsed >= milliseconds(patience) && flags().release()) {
    call.waits = true;
  }
}

void look() {
  while (true) {
    std::this_thread::sleep_for(kLook);
    std::unique_lock guard(mutex);
    if (!call.running) continue;
    if (Clock::now() - call.since > kHopeless + milliseconds(patience)) on_hung();
    if (patience == 0) {
      look_natively(guard);
    } else {
      look_with_patience();
    }
  }
}

}  // namespace

Watch &watch() {
  static Watch one;
  return one;
}

void Watch::start(int patience_ms, void (*hung)()) {
  patience = patience_ms;
  on_hung = hung;
  std::thread(look).detach();
}

void Watch::enter(bool waited, bool late) {
  const std::lock_guard guard(mutex);
  call = {call.number + 1, true, waited, late, false, Clock::now()};
}

std::string Watch::leave() {
  std::unique_lock guard(mutex);
  call.running = false;
  const bool waits = call.waits;
  const bool as_natively = patience != 0 && call.waited_natively;
  if (as_natively && call.late) {
    flags().unlock_all();
    owed |= flags().closed();
  } else if (as_natively) {
    flags().release();
  }
  const bool released = waits || (as_natively && !call.late);
  guard.unlock();
  if (released) wait_until_still();
  if (!waits) return "";
  return patience == 0 ? "w" : "W";
}

}  // namespace oracle
