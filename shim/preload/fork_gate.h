// Keeps forks out of the loading of the core (fork_gate.cc). Layer: preload. Threads: any.
#pragma once

namespace ration::preload {

// From now on forks wait, 50 ms at most; waits for forks in progress as long. Calls may nest.
void keep_forks_out();
void let_forks_in();

}  // namespace ration::preload
