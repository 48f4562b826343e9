// Finds a framework in this process that reads XLA_* and TF_* itself. Layer: runtime. Threads: any.
// Called from: first use.
#pragma once

#include <string>
#include <string_view>

namespace ration::runtime {

// "xla_cuda_plugin.so is loaded"; empty: none is.
std::string loaded_framework();

// Whether `path` is a library of a framework: JAX's plug-in for CUDA, TensorFlow.
bool is_framework(std::string_view path);

}  // namespace ration::runtime
