// Notices when a call of the program waits, and lets it go on by setting all flags: in a native run as soon as nothing
// else happens in the process, under Ration after a timeout. Layer: flags.h, stillness.h. Threads: one call at a time.
#pragma once

#include <string>

namespace oracle {

class Watch {
 public:
  // `patience_ms` 0: natively. `hung` is called, once, if a call does not return even then.
  void start(int patience_ms, void (*hung)());
  // Called before a call. `waited`: it waited in the native run. `late`: the flags that such a call set then are now
  // set only when another call waits.
  void enter(bool waited, bool late);
  // Called after it. "w": it waited in a native run; "W": it waited under Ration but not natively; else "".
  std::string leave();
};

Watch &watch();

}  // namespace oracle
