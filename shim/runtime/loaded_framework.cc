#include "runtime/loaded_framework.h"

#include <link.h>

#include <algorithm>

#include "base/file_name.h"

namespace ration::runtime {
namespace {

// The file names, which a version may follow. jaxlib itself is not listed: without the plug-in JAX runs on the CPU, so
// the library that uses CUDA is another one.
constexpr std::string_view kFrameworks[] = {
    "xla_cuda_plugin.so",             // jax-cuda12-pjrt, jax-cuda13-pjrt
    "pjrt_c_api_gpu_plugin.so",       // the same plug-in, built from XLA
    "libtensorflow_framework.so",     // TensorFlow's wheel
    "libtensorflow_cc.so",            // its other libraries, if linked without that one
    "libtensorflow.so",               //
    "_pywrap_tensorflow_internal.so"  // versions with a single library
};

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

// dl_iterate_phdr takes a different lock than dlopen. So this cannot deadlock with a thread that is in dlopen, in a
// constructor that waits for the calling thread.
std::string loaded_framework() {
  std::string name;
  dl_iterate_phdr(look, &name);
  return name.empty() ? name : name + " is loaded";
}

}  // namespace ration::runtime
