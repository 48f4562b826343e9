// Finds a framework in this process that itself reads the variables XLA_* and TF_*. Layer: runtime. Threads: any.
// Called from: first use.
#pragma once

#include <string>
#include <string_view>

namespace ration::runtime {

// For instance "xla_cuda_plugin.so is loaded"; empty: no framework is loaded.
std::string loaded_framework();

// Whether `path` is a library of such a framework: JAX's CUDA plug-in, or TensorFlow.
bool is_framework(std::string_view path);

}  // namespace ration::runtime
