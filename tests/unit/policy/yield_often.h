// Gives other threads time to do what the test forbids, so that a failure would show.
#pragma once

#include <thread>

namespace ration::test {

// Long enough for any thread that is ready to run, but bounded.
inline void yield_often() {
  for (int turn = 0; turn < 2000; ++turn) {
    std::this_thread::yield();
  }
}

}  // namespace ration::test
