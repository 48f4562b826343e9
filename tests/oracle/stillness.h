// Tells whether every other thread of the process sleeps, so that nothing happens until this thread acts. Layer: none.
// Threads: any.
#pragma once

namespace oracle {

// Looks twice. Threads in an uninterruptible sleep count as busy.
bool others_sleep();
// Returns when all other threads sleep, at the latest after about a second.
void wait_until_still();

}  // namespace oracle
