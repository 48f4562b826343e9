// The kernel's number of the calling thread, asked for once.
// Layer: base. Threads: any.
#pragma once

namespace ration {

// gettid(2), without a system call where the thread's state keeps the answer (core_abi.h).
int thread_number() noexcept;

}  // namespace ration
