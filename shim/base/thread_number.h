// The kernel's ID of the calling thread, cached after the first call.
// Layer: base. Threads: any.
#pragma once

namespace ration {

// Like gettid(2), but without a system call if the thread's state has the number already (core_abi.h).
int thread_number() noexcept;

}  // namespace ration
