// Which framework is in the process that reads XLA_* and TF_* variables itself. Layer: runtime. Threads: any.
// Called from: first use.
#pragma once

#include <string>
#include <string_view>

namespace ration::runtime {

// "xla_cuda_plugin.so is loaded", empty where there is none.
std::string loaded_framework();

// Whether a library of this path is one: JAX's plug-in for CUDA, TensorFlow.
bool is_framework(std::string_view path);

}  // namespace ration::runtime
