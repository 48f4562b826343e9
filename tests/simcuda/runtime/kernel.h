// Kernels, found by their registered names. Layer: driver.h. Threads: any.
#pragma once

namespace simcudart {

// Unloads the library of the registered kernels. Called from: exit.
void unload_kernels();

}  // namespace simcudart
