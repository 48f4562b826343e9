#include "events/explained_events.h"

#include "events/diagnostics.h"

namespace ration::events {

void explain_event(const SlabAlloc &event) noexcept {
  if (event.range != 0) {
    explain(Level::debug, "device ", event.device, ": the pool of context ", event.context, " reserves ", event.range,
            " bytes of addresses");
  } else {
    explain(event.granule ? Level::trace : Level::debug, "device ", event.device, ": the pool of context ",
            event.context, " takes a ", event.granule ? "granule" : "slab", " of ", event.size, " bytes by ",
            event.backend, " (", event.why, ")");
  }
}

void explain_event(const SlabFree &event) noexcept {
  explain(Level::trace, "device ", event.device, ": the pool of context ", event.context, " releases ", event.size,
          " bytes in ", event.api);
}

void explain_event(const Wait &event) noexcept {
  explain(Level::debug, "device ", event.device, ": ", event.api != nullptr ? event.api : "a call", " waited ",
          event.duration_ns / 1000, " microseconds (", event.how, ") and gained ", event.bytes, " bytes");
}

void explain_event(const Trim &event) noexcept {
  explain(Level::debug, "device ", event.device, ": ", event.bytes, " free bytes go back to the driver for ",
          event.api != nullptr ? event.api : "a call", ", in ", event.slabs, " slabs and ", event.granules,
          " granules");
}

void explain_event(const Oom &event) noexcept {
  explain(Level::info, "device ", event.device, ": ", event.api, " of ", event.requested, " bytes is refused (",
          name_of(event.reason), "): ", event.used, " bytes are used, ", event.reserved, " reserved, ",
          event.quarantined, " freed and not clean yet; the limit is ", event.limit, ", the largest free piece ",
          event.largest_free);
}

}  // namespace ration::events
