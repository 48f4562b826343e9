// Which library a file belongs to. Layer: logs. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ration::logs {

// The name that people know: "cuDNN" of /…/libcudnn.so.9, "PyTorch" of libc10_cuda.so; else the file's name without its
// version.
std::string library_of(std::string_view path);
// The package of a Python file, "numba" of /…/site-packages/numba/cuda/api.py; "Python" of the standard library; empty:
// of the program.
std::string package_of(std::string_view path);

// Passes requests on and makes none of its own: the driver, the CUDA runtime, Ration, the loader, the C library, an
// interpreter.
bool is_plumbing(std::string_view library);

}  // namespace ration::logs
