// Notices when a call of the program waits, and lets it continue by setting all flags: natively as soon as nothing else
// happens in the process, under Ration after a timeout. Layer: flags.h, stillness.h. Threads: one call at a time.
#pragma once

#include <string>

namespace oracle {

class Watch {
 public:
  // `patience_ms` 0: the native run. `hung` is called, once, if a call does not return even with all flags set.
  void start(int patience_ms, void (*hung)());
  // Called before a call. `waited`: the call waited in the native run. `late`: the flags that a waiting call set in
  // that run are now set only when another call waits.
  void enter(bool waited, bool late);
  // Called afterwards. Returns "w" if the call waited natively, "W" if it waited only under Ration, else "".
  std::string leave();
};

Watch &watch();

}  // namespace oracle
