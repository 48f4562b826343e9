// What a core with witness.cc in it tells the program of a call while it runs, on the thread that makes the call.
// The program defines and exports preload_witness.
#pragma once

namespace preload::pool {

enum class Seen : int {
  served,  // the short way took it: BlockPools::allocate_hit or free_hit answered true
  looked,  // and this free was due, so the quarantine is looked after
  told,    // figures are being told to others
};

}  // namespace preload::pool

extern "C" [[gnu::visibility("default")]] void preload_witness(preload::pool::Seen what) noexcept;
