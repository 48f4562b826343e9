// Finds the library that a file belongs to. Layer: logs. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ration::logs {

// The name that people know, such as "cuDNN" for /…/libcudnn.so.9 or "PyTorch" for libc10_cuda.so. For other files, the
// file's name without its version.
std::string library_of(std::string_view path);
// The package of a Python file: "numba" for /…/site-packages/numba/cuda/api.py, "Python" for the standard library;
// empty: the file belongs to the program.
std::string package_of(std::string_view path);

// True for libraries that only pass requests on and make none of their own: the driver, the CUDA runtime, Ration, the
// loader, the C library, an interpreter.
bool is_plumbing(std::string_view library);

}  // namespace ration::logs
