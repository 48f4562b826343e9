// The kernels and device variables that tests registered. Layer: code.h. Threads: any. Owns: all of them, for ever.
#include <memory>
#include <mutex>

#include "tests/simcuda/code.h"

namespace simcuda {
namespace {

struct Registered {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const Kernel>> kernels;
  std::map<std::string, std::size_t> globals;
};

Registered &registered() {
  static auto *const once = new Registered;
  return *once;
}

}  // namespace

const Kernel *find_kernel(const std::string &name) {
  const std::lock_guard<std::mutex> guard(registered().mutex);
  const auto found = registered().kernels.find(name);
  return found == registered().kernels.end() ? nullptr : found->second.get();
}

std::vector<const Kernel *> all_kernels() {
  const std::lock_guard<std::mutex> guard(registered().mutex);
  std::vector<const Kernel *> all;
  for (const auto &[name, kernel] : registered().kernels) all.push_back(kernel.get());
  return all;
}

std::vector<std::pair<std::string, std::size_t>> all_globals() {
  const std::lock_guard<std::mutex> guard(registered().mutex);
  return {registered().globals.begin(), registered().globals.end()};
}

}  // namespace simcuda

int simcuda_register_kernel(const char *name, simcuda_kernel kernel, const size_t *param_bytes, unsigned params) {
  if (name == nullptr || kernel == nullptr || (param_bytes == nullptr && params != 0)) return -1;
  auto made = std::make_unique<const simcuda::Kernel>(
      simcuda::Kernel{name, kernel, std::vector<std::size_t>(param_bytes, param_bytes + params)});
  const std::lock_guard<std::mutex> guard(simcuda::registered().mutex);
  return simcuda::registered().kernels.emplace(name, std::move(made)).second ? 0 : -1;
}

int simcuda_register_global(const char *name, size_t bytes) {
  if (name == nullptr || bytes == 0) return -1;
  const std::lock_guard<std::mutex> guard(simcuda::registered().mutex);
  return simcuda::registered().globals.emplace(name, bytes).second ? 0 : -1;
}
