#include "runtime/loaded_framework.h"

#include <link.h>

#include <algorithm>

namespace ration::runtime {
namespace {

// The file names, to which a version may be added. jaxlib itself is not among them: without the plug-in it is JAX for
// the processor, beside which somebody else uses CUDA.
constexpr std::string_view kFrameworks[] = {
    "xla_cuda_plugin.so",             // jax-cuda12-pjrt, jax-cuda13-pjrt
    "pjrt_c_api_gpu_plugin.so",       // the same, built from XLA
    "libtensorflow_framework.so",     // TensorFlow's wheel
    "libtensorflow_cc.so",            // and its other libraries, where they are linked without that one
    "libtensorflow.so",               //
    "_pywrap_tensorflow_internal.so"  // versions that are one library
};

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

int look(dl_phdr_info *object, std::size_t, void *found) {
  if (object->dlpi_name == nullptr || !is_framework(object->dlpi_name)) {
    return 0;
  }
  *static_cast<std::string *>(found) = file_name(object->dlpi_name);
  return 1;
}

}  // namespace

bool is_framework(std::string_view path) {
  const std::string_view name = file_name(path);
  for (const std::string_view framework : kFrameworks) {
    const std::string_view rest = name.substr(std::min(framework.size(), name.size()));
    if (name.substr(0, framework.size()) == framework && (rest.empty() || rest.front() == '.')) {
      return true;
    }
  }
  return false;
}

// The loader's list is held by a lock of its own, not by that of a dlopen in progress: a thread whose library's
// constructor waits for us keeps nobody here.
std::string loaded_framework() {
  std::string name;
  dl_iterate_phdr(look, &name);
  return name.empty() ? name : name + " is loaded";
}

}  // namespace ration::runtime
