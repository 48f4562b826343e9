// Gives other threads time for what the test forbids them to do, so that a failure would show.
#pragma once

#include <thread>

namespace ration::test {

// Long enough for any thread that is ready to run, but with an end.
inline void yield_often() {
  for (int turn = 0; turn < 2000; ++turn) {
    std::this_thread::yield();
  }
}

}  // namespace ration::test
