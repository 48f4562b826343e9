#include "tests/simcuda/driver.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "implemented.h"
#include "tests/simcuda/bytes.h"
#include "tests/simcuda/include/simcuda/simcuda.h"
#include "tests/simcuda/visible_devices.h"

namespace simcuda {
namespace {

std::atomic<Driver *> ready_driver{nullptr};
std::atomic<Driver *> without_devices{nullptr};  // unusable, but keeps its slot of the machine
std::mutex init_mutex;
// One page that the kernel wipes in every child, however it was created. If it is intact, this is the process that
// called cuInit.
std::atomic<unsigned> *alive = nullptr;

bool make_life_sign() {
  void *page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || ::madvise(page, kPage, MADV_WIPEONFORK) != 0) return false;
  alive = new (page) std::atomic<unsigned>(1);
  return true;
}

Driver *make() {
  const Settings &options = settings();
  Machine *machine = Machine::join(options);
  if (machine == nullptr || !make_life_sign()) return nullptr;
  auto *made = new Driver;
  made->settings = &options;
  made->machine = machine;
  for (const unsigned physical : visible_devices(*machine, options.visible)) {
    Device &device = made->devices.emplace_back();
    device.physical = physical;
    device.bytes = machine->device(physical).bytes;
    std::memcpy(device.uuid.bytes, machine->device(physical).uuid, sizeof device.uuid.bytes);
    device.primary = std::make_unique<Context>();
    device.primary->primary = true;
  }
  for (Device &device : made->devices) device.primary->device = &device;
  return made;
}

// An orderly exit is only noted: the driver stays usable for exit handlers that run later.
[[gnu::destructor]] void leave_word() {
  if (phase() == Phase::kReady) driver().machine->mark_ended();
}

}  // namespace

Driver &driver() {
  return *ready_driver.load();
}

Phase phase() {
  if (ready_driver.load() == nullptr) return Phase::kFresh;
  return alive->load() != 0 ? Phase::kReady : Phase::kForked;
}

CUresult cuInit(unsigned int Flags) {
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (phase() == Phase::kForked) return CUDA_ERROR_NOT_INITIALIZED;
  static CUresult failure = CUDA_SUCCESS;
  const std::lock_guard<std::mutex> guard(init_mutex);
  if (ready_driver.load() != nullptr || failure != CUDA_SUCCESS) return failure;
  Driver *made = make();
  if (made == nullptr) {
    failure = CUDA_ERROR_UNKNOWN;
  } else if (made->devices.empty()) {
    failure = CUDA_ERROR_NO_DEVICE;
    without_devices.store(made);
  } else {
    ready_driver.store(made);
  }
  return failure;
}

CUresult cuDriverGetVersion(int *driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult device_of(CUdevice ordinal, Device **device) {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= driver().devices.size()) return CUDA_ERROR_INVALID_DEVICE;
  *device = &driver().devices[static_cast<std::size_t>(ordinal)];
  return CUDA_SUCCESS;
}

int ordinal_of(const Device &device) {
  return static_cast<int>(&device - driver().devices.data());
}

std::byte *view_of(std::uint64_t address) {
  for (const Device &device : driver().devices) {
    for (const AddressSpace *space : {device.space, device.managed, device.graphs, device.legacy32}) {
      if (space != nullptr && space->contains(address)) return space->view(address);
    }
  }
  const auto found = mapped_at(address);
  return found ? found->reservation->view + (address - found->reserved_at) : nullptr;
}

}  // namespace simcuda

void *simcuda_host_view(CUdeviceptr address) {
  if (simcuda::phase() != simcuda::Phase::kReady) return nullptr;
  const simcuda::Lock lock(simcuda::driver().mutex);
  const auto reserved = simcuda::mapped_at(address);
  std::byte *const view = simcuda::view_of(address);
  return reserved && reserved->mapping == nullptr && !simcuda::is_watched(view) ? nullptr : view;
}

void *simcuda_private_machine(void) {
  if (simcuda::phase() != simcuda::Phase::kReady || !simcuda::settings().machine.empty()) return nullptr;
  return simcuda::driver().machine->page();
}
