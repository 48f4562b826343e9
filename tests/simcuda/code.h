// Modules, libraries and their functions. Any image contains every kernel and variable that a test registered
// (simcuda.h).
// Layer: driver.h. Threads: under Driver::mutex; a registered kernel is constant.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/simcuda/driver.h"
#include "tests/simcuda/include/simcuda/simcuda.h"

namespace simcuda {

struct Kernel {
  std::string name;
  simcuda_kernel run;
  std::vector<std::size_t> param_bytes;
};

struct Image {
  Context *context = nullptr;                                          // null: a library, which belongs to no context
  std::map<std::string, Function *> functions;                         // created on request
  std::map<std::pair<Context *, std::string>, std::uint64_t> globals;  // address of a variable in a context
};

struct Function {
  const Kernel *kernel = nullptr;
  Image *image = nullptr;
  int attributes[CU_FUNC_ATTRIBUTE_MAX] = {};
};

const Kernel *find_kernel(const std::string &name);
std::vector<const Kernel *> all_kernels();
std::vector<std::pair<std::string, std::size_t>> all_globals();

// Creates the variables of an image in a context if they do not exist yet: for a module when it is loaded, for a
// library at its first use. OUT_OF_MEMORY: none was created. Under the lock.
CUresult make_globals(Image &image, Context &context);
// Takes the memory that the first launch in a context needs. Under the lock.
CUresult take_for_launch(Context &context);

// The offset of each parameter in a packed buffer: after the previous one, aligned to its own size (at most 16).
std::vector<std::size_t> offsets_of(const std::vector<std::size_t> &param_bytes);

Function *find_function(const void *handle);
// The function with that name in an image; null if no test registered it.
Function *function_in(Image &image, const char *name);

}  // namespace simcuda
