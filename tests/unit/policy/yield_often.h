// Gives other threads time to do what they must not.
#pragma once

#include <thread>

namespace ration::test {

// Long enough for a thread that is ready to run, and bounded.
inline void yield_often() {
  for (int turn = 0; turn < 2000; ++turn) {
    std::this_thread::yield();
  }
}

}  // namespace ration::test
