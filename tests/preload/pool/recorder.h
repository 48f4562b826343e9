// The reports that a core with recorder.cc makes about a call while it runs, on the thread that makes the call.
// The program defines and exports preload_record.
#pragma once

namespace preload::pool {

enum class Seen : int {
  served,     // the fast path served it: FastPath::allocate_hit or free_hit returned true
  due,        // served, but the free then has to collect the quarantine or wait
  published,  // figures are being published to other processes
};

}  // namespace preload::pool

extern "C" [[gnu::visibility("default")]] void preload_record(preload::pool::Seen what) noexcept;
