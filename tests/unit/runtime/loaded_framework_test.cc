#include "runtime/loaded_framework.h"

#include "catch.h"

using namespace ration::runtime;

TEST_CASE("a framework is known by its library's name, whatever its folder and version") {
  for (const char *path :
       {"/x/jax_plugins/xla_cuda12/xla_cuda_plugin.so", "pjrt_c_api_gpu_plugin.so", "/y/libtensorflow_framework.so.2",
        "/libtensorflow_cc.so.2.16.1", "libtensorflow.so", "/z/_pywrap_tensorflow_internal.so"}) {
    INFO(path);
    CHECK(is_framework(path));
  }
  for (const char *path : {"", "/", "/x/libxla_cuda_plugin.so", "xla_cuda_plugin.sox", "/xla_cuda_plugin.so/libm.so.6",
                           "libtensorflowlite.so", "libtensorflow_io.so", "xla_extension.so", "xla_cuda_plugin"}) {
    INFO(path);
    CHECK_FALSE(is_framework(path));
  }
}

TEST_CASE("none is loaded here") {
  CHECK(loaded_framework().empty());
}
