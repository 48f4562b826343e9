// Writes events that are Ration's decisions to the diagnostics. Layer: events (a leaf). Threads: any.
#pragma once

#include "events/event.h"

namespace ration::events {

void explain_event(const SlabAlloc &event) noexcept;
void explain_event(const SlabFree &event) noexcept;
void explain_event(const Wait &event) noexcept;
void explain_event(const Trim &event) noexcept;
void explain_event(const Oom &event) noexcept;

// All other events are actions of the program, which are only in the log.
template <class Event>
void explain_event(const Event & /*event*/) noexcept {}

}  // namespace ration::events
