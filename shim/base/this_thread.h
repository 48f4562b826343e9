// The identity of the calling thread, only for comparison with other threads.
// Layer: base. Threads: any.
#pragma once

#include <pthread.h>

namespace ration {

// Uses pthread_self, because the first access to a thread_local in a library that was opened late may allocate.
inline const void *this_thread() {
  return reinterpret_cast<const void *>(pthread_self());
}

}  // namespace ration
