#include "logs/stacks/libraries.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/file_name.h"

namespace ration::logs {
namespace {

using Prefixes = std::pair<std::string_view, std::string_view>;

// Known libraries by the beginning of the file's name; the first match counts.
constexpr std::array<Prefixes, 34> kKnown = {{{"libcudart.", "CUDA runtime"},
                                              {"libcudnn", "cuDNN"},
                                              {"libnccl", "NCCL"},
                                              {"libcublas", "cuBLAS"},
                                              {"libnvblas", "cuBLAS"},
                                              {"libcufft", "cuFFT"},
                                              {"libcusparse", "cuSPARSE"},
                                              {"libcusolver", "cuSOLVER"},
                                              {"libcurand", "cuRAND"},
                                              {"libcutensor", "cuTENSOR"},
                                              {"libnvinfer", "TensorRT"},
                                              {"libnvrtc", "NVRTC"},
                                              {"libnvJitLink", "nvJitLink"},
                                              {"libnvjpeg", "nvJPEG"},
                                              {"libnvshmem", "NVSHMEM"},
                                              {"libcupti", "CUPTI"},
                                              {"libnppc", "NPP"},
                                              {"libnpp", "NPP"},
                                              {"libcufile", "cuFile"},
                                              {"librmm", "RMM"},
                                              {"libcudf", "cuDF"},
                                              {"libtorch", "PyTorch"},
                                              {"libc10", "PyTorch"},
                                              {"libtensorflow", "TensorFlow"},
                                              {"_pywrap_tensorflow", "TensorFlow"},
                                              {"xla_", "XLA"},
                                              {"libonnxruntime", "ONNX Runtime"},
                                              {"libggml", "ggml"},
                                              {"libmpi", "MPI"},
                                              {"libucp", "UCX"},
                                              {"libuct", "UCX"},
                                              {"libcuda.", "CUDA driver"},
                                              {"libnvidia-", "CUDA driver"},
                                              {"libration", "Ration"}}};

// Files of the C library, and of libraries that only forward calls.
constexpr std::array<std::string_view, 14> kForwarding = {
    "libc.",     "libpthread", "libdl.",     "librt.",   "libm.",      "ld-linux", "libffi",
    "libstdc++", "libgcc_s",   "libpython3", "_ctypes.", "libasan.so", "libtsan.", "linux-vdso"};

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

}  // namespace

std::string library_of(std::string_view path) {
  const std::string_view name = file_name(path);
  for (const auto &[prefix, known] : kKnown) {
    if (begins(name, prefix)) {
      return std::string(known);
    }
  }
  std::string package = package_of(path);  // not empty: an extension module of a Python package
  if (!package.empty() && package != "Python") {
    return package;
  }
  const bool forwards = std::any_of(kForwarding.begin(), kForwarding.end(),
                                    [name](std::string_view prefix) { return begins(name, prefix); });
  return forwards ? "C library" : std::string(name.substr(0, name.find(".so")));
}

std::string package_of(std::string_view path) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    if (const std::size_t at = path.rfind(folder); at != std::string_view::npos) {
      const std::string_view rest = path.substr(at + folder.size());
      const std::string_view name = rest.substr(0, std::min(rest.find('/'), rest.find('.')));
      return name == "cuda" ? "CUDA Python" : std::string(name);
    }
  }
  const std::size_t standard = path.find("/lib/python3");
  return standard != std::string_view::npos || begins(path, "<frozen") ? "Python" : "";
}

bool is_plumbing(std::string_view library) {
  constexpr std::array<std::string_view, 6> kPlumbing = {"CUDA driver", "CUDA runtime", "CUDA Python",
                                                         "Ration",      "C library",    "Python"};
  return std::find(kPlumbing.begin(), kPlumbing.end(), library) != kPlumbing.end();
}

}  // namespace ration::logs
