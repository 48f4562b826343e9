// The kernels and device variables that tests registered. Layer: code.h. Threads: any. Owns: all of them, for ever.
#include <memory>
#include <mutex>

#include "tests/simcuda/code.h"

namespace simcuda {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const Kernel>> kernels;
  std::map<std::string, std::size_t> globals;
};

Registry &registry() {
  static auto *const once = new Registry;
  return *once;
}

}  // namespace

const Kernel *find_kernel(const std::string &name) {
  const std::lock_guard<std::mutex> guard(registry().mutex);
  const auto found = registry().kernels.find(name);
  return found == registry().kernels.end() ? nullptr : found->second.get();
}

std::vector<const Kernel *> all_kernels() {
  const std::lock_guard<std::mutex> guard(registry().mutex);
  std::vector<const Kernel *> all;
  for (const auto &[name, kernel] : registry().kernels) all.push_back(kernel.get());
  return all;
}

std::vector<std::pair<std::string, std::size_t>> all_globals() {
  const std::lock_guard<std::mutex> guard(registry().mutex);
  return {registry().globals.begin(), registry().globals.end()};
}

}  // namespace simcuda

int simcuda_register_kernel(const char *name, simcuda_kernel kernel, const size_t *param_bytes, unsigned params) {
  if (name == nullptr || kernel == nullptr || (param_bytes == nullptr && params != 0)) return -1;
  auto made = std::make_unique<const simcuda::Kernel>(
      simcuda::Kernel{name, kernel, std::vector<std::size_t>(param_bytes, param_bytes + params)});
  const std::lock_guard<std::mutex> guard(simcuda::registry().mutex);
  return simcuda::registry().kernels.emplace(name, std::move(made)).second ? 0 : -1;
}

int simcuda_register_global(const char *name, size_t bytes) {
  if (name == nullptr || bytes == 0) return -1;
  const std::lock_guard<std::mutex> guard(simcuda::registry().mutex);
  return simcuda::registry().globals.emplace(name, bytes).second ? 0 : -1;
}
