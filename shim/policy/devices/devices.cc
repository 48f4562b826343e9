#include "policy/devices/devices.h"

#include <algorithm>
#include <memory>

#include "events/diagnostics.h"
#include "ledger/device_key.h"

namespace ration::policy {
namespace {

using driver::real;

std::string uuid_of(CUdevice device) {
  CUuuid uuid{};
  const bool answered = (real.cuDeviceGetUuid_v2.present() && real.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS) ||
                        (real.cuDeviceGetUuid.present() && real.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS);
  return answered ? ledger::uuid_text(uuid.bytes) : std::string();
}

std::string name_of(CUdevice device) {
  char name[256] = {};
  return real.cuDeviceGetName.present() && real.cuDeviceGetName(name, sizeof(name) - 1, device) == CUDA_SUCCESS
             ? std::string(name)
             : std::string();
}

std::uint64_t total_of(CUdevice device) {
  std::size_t bytes = 0;
  return real.cuDeviceTotalMem_v2.present() && real.cuDeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS ? bytes : 0;
}

// Counts the devices. False: the driver cannot be asked yet. If it lacks cuDeviceGetCount, asks for one device after
// the other.
bool count_devices(int &count) {
  if (real.cuDeviceGetCount.present()) {
    return real.cuDeviceGetCount(&count) == CUDA_SUCCESS;
  }
  if (!real.cuDeviceGet.present()) {
    count = 1;
    return true;
  }
  CUresult answer = CUDA_SUCCESS;
  for (count = 0; count < ledger::kMaxDevices; ++count) {
    CUdevice device = 0;
    answer = real.cuDeviceGet(&device, count);
    if (answer != CUDA_SUCCESS) {
      break;
    }
  }
  return count > 0 || answer == CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

events::DeviceFacts Device::facts() const {
  const std::uint64_t bytes = total.load(std::memory_order_relaxed);
  const bool asked = limit_asked.load(std::memory_order_relaxed);
  return {ordinal, uuid, name, bytes, asked ? limit.load(std::memory_order_relaxed) : bytes, asked};
}

bool Devices::discover() {
  int count = 0;
  if (!count_devices(count)) {
    return false;
  }
  count = std::min(count, ledger::kMaxDevices);
  auto found = std::make_unique<std::vector<Device>>(static_cast<std::size_t>(count));
  std::vector<events::DeviceFacts> facts;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    Device &device = (*found)[static_cast<std::size_t>(ordinal)];
    device.ordinal = ordinal;
    device.handle = ordinal;
    if (real.cuDeviceGet.present()) {
      real.cuDeviceGet(&device.handle, ordinal);
    }
    device.uuid = uuid_of(device.handle);
    device.name = name_of(device.handle);
    device.total.store(total_of(device.handle), std::memory_order_relaxed);
    facts.push_back(device.facts());
  }
  std::vector<std::string> lines;
  std::vector<Owed> owed;
  bool is_first = false;
  {
    Guard guard(mutex_);
    if (devices_.load(std::memory_order_relaxed) == nullptr) {
      is_first = true;
      lines = limits_.resolve_devices(facts);
      for (std::size_t i = 0; i < facts.size(); ++i) {
        lines.push_back(resolve_limit((*found)[i], facts[i]));
        enter_groups(facts[i], lines, owed);
      }
      devices_.store(found.release(), std::memory_order_release);  // pairs with the acquire in all()
    }
  }
  for (const std::string &line : lines) {
    if (!line.empty()) {
      events::say(line);
    }
  }
  if (is_first && events::shows(events::Level::info)) {
    explain_limits();
  }
  claim(owed);
  return true;
}

void Devices::explain_limits() {
  for (const Device &device : *devices_.load(std::memory_order_acquire)) {
    const events::DeviceFacts facts = device.facts();
    const auto shown = [](bool asked, std::uint64_t bytes) {
      return asked ? "limit " + std::to_string(bytes) : std::string("no limit");
    };
    const std::uint64_t of_groups = ledger_.account(device.ordinal).group_limit();
    events::explain(events::Level::info, "device ", facts.ordinal, " (", facts.name, ", ", facts.uuid,
                    "): ", facts.total, " bytes, ", shown(facts.limit_asked, facts.limit), " of the process, ",
                    shown(of_groups < ledger::kMostHeld, of_groups), " of its groups");
  }
}

std::string Devices::resolve_limit(Device &device, const events::DeviceFacts &facts) const {
  std::string line;
  DeviceLimit limit = limits_.limit_on(facts);
  if (limit.asked && facts.total == 0 && !real.cuMemGetInfo_v2.present()) {
    const auto limit_on = [this](const events::DeviceFacts &device) { return limits_.limit_on(device).bytes; };
    if (!without_total(facts, limit_on, limit.bytes)) {
      limit.bytes = 0;
      line = "the limit on device " + std::to_string(device.ordinal) +
             " is a percentage of its memory, and the driver does not report its size: every allocation is refused; " +
             "ask for a limit in bytes";
    }
  }
  device.limit_asked.store(limit.asked, std::memory_order_relaxed);
  if (limit.asked) {
    device.limit.store(limit.bytes, std::memory_order_relaxed);
    ledger_.account(device.ordinal).set_limit(limit.bytes);
  }
  return line;
}

const std::vector<Device> *Devices::all() {
  const auto *devices = devices_.load(std::memory_order_acquire);
  if (devices == nullptr && discover()) {
    devices = devices_.load(std::memory_order_acquire);
  }
  return devices;
}

const Device *Devices::find(int ordinal) {
  const auto *devices = all();
  return devices != nullptr && ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices->size()
             ? &(*devices)[static_cast<std::size_t>(ordinal)]
             : nullptr;
}

const Device *Devices::find_handle(CUdevice handle) {
  if (const auto *devices = all()) {
    for (const Device &device : *devices) {
      if (device.handle == handle) {
        return &device;
      }
    }
  }
  return nullptr;
}

int Devices::ordinal_of(CUdevice handle) {
  const Device *device = find_handle(handle);
  return device != nullptr ? device->ordinal : 0;
}

void Devices::learn_total(int ordinal) {
  const Device *known = find(ordinal);
  if (known == nullptr || known->total.load(std::memory_order_relaxed) != 0 || !real.cuMemGetInfo_v2.present()) {
    return;
  }
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  if (real.cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS || total == 0) {
    return;
  }
  std::vector<Owed> owed;
  {
    Guard guard(mutex_);
    Device &device = (*devices_.load(std::memory_order_relaxed))[static_cast<std::size_t>(ordinal)];
    if (device.total.load(std::memory_order_relaxed) == 0) {
      device.total.store(total, std::memory_order_relaxed);
      resolve_limit(device, device.facts());  // gives no line for the user, because the total is known
      std::vector<std::string> nothing;
      enter_groups(device.facts(), nothing, owed);
    }
  }
  claim(owed);
}

std::uint64_t Devices::total_on(int ordinal) {
  const Device *device = find(ordinal);
  return device != nullptr ? device->total.load(std::memory_order_relaxed) : 0;
}

Preallocation Devices::preallocation_on(int ordinal, bool async) {
  const Device *device = find(ordinal);
  if (device == nullptr) {
    return {};
  }
  return async ? limits_.async_preallocation_on(device->facts()) : limits_.preallocation_on(device->facts());
}

}  // namespace ration::policy
