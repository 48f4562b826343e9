// The events that are decisions, as lines of the diagnostics. Layer: events (a leaf). Threads: any.
#pragma once

#include "events/event.h"

namespace ration::events {

void explain_event(const SlabAlloc &event) noexcept;
void explain_event(const SlabFree &event) noexcept;
void explain_event(const Wait &event) noexcept;
void explain_event(const Trim &event) noexcept;
void explain_event(const Oom &event) noexcept;

// What the program does, and the log tells.
template <class Event>
void explain_event(const Event & /*event*/) noexcept {}

}  // namespace ration::events
