// Kernels by registered name. Layer: driver.h. Threads: any.
#pragma once

namespace simcudart {

// Gives the library of the registered kernels back to the driver. Called from: exit.
void unload_kernels();

}  // namespace simcudart
