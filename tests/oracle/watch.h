// Sees which call of the program waits, and lets it go on by releasing all flags: natively as soon as nothing else
// happens in the process, elsewhere with a patience. Layer: flags.h, stillness.h. Threads: one call at a time.
#pragma once

#include <string>

namespace oracle {

class Watch {
 public:
  // `patience_ms` 0: natively. `hung` is called, once, if a call does not return in any case.
  void start(int patience_ms, void (*hung)());
  // Before a call. `waited`: natively it did. `late`: what such a call released is released when another call waits.
  void enter(bool waited, bool late);
  // After it. "w": it waited, natively; "W": it waited where it does not natively; else "".
  std::string leave();
};

Watch &watch();

}  // namespace oracle
