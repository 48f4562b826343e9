// Events of a whole context, for every kind of context. Layer: event.h. Threads: under Driver::mutex.
#pragma once
#include "tests/simcuda/context.h"
#include "tests/simcuda/event.h"

namespace simcuda {

// INVALID_HANDLE: the event belongs to another context; STREAM_CAPTURE_UNSUPPORTED: a stream of the context captures.
CUresult record_event(Lock &lock, Context &context, Event &event);
CUresult await_event(Lock &lock, Context &context, const Event &event);

}  // namespace simcuda
