// What a program and the preload loading.cc tell each other, in the program's variable `loading_core`.
#pragma once

#include <atomic>

struct LoadingCore {
  std::atomic<bool> begun{false};
  std::atomic<bool> forking{false};
  std::atomic<bool> done{false};
};
