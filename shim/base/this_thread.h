// The identity of the calling thread, for marks in a table; only for comparison.
// Layer: base. Threads: any.
#pragma once

#include <pthread.h>

namespace ration {

// pthread_self instead of a thread_local: the first access to one in a library that was opened late may allocate.
inline const void *this_thread() {
  return reinterpret_cast<const void *>(pthread_self());
}

}  // namespace ration
