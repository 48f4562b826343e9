// Who is asking: an identity to compare, for marks that a thread leaves in a table.
// Layer: policy. Threads: any.
#pragma once

#include <pthread.h>

namespace ration::policy {

// Not a thread_local of our own: reaching one in a library that was opened late may allocate.
inline const void *this_thread() {
  return reinterpret_cast<const void *>(pthread_self());
}

}  // namespace ration::policy
