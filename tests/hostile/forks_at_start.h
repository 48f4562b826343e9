// The values of the program's variable `loading_core`, through which the program and the preloaded library loading.cc
// signal each other.
#pragma once

#include <atomic>

struct LoadingCore {
  std::atomic<bool> begun{false};
  std::atomic<bool> forking{false};
  std::atomic<bool> done{false};
};
