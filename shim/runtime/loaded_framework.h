// Finds a framework in this process that itself reads the environment variables XLA_* and TF_*. Layer: runtime.
// Threads: any. Called from: first use.
#pragma once

#include <string>
#include <string_view>

namespace ration::runtime {

// For example "xla_cuda_plugin.so is loaded"; empty if no framework is loaded.
std::string loaded_framework();

// True if `path` is a library of such a framework, that is, JAX's CUDA plug-in or TensorFlow.
bool is_framework(std::string_view path);

}  // namespace ration::runtime
