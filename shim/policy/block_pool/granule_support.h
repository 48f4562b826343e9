// What the devices' drivers say of granules, and how they are made and reached on each.
// Layer: policy/block_pool. Threads: any; no lock is held.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "ledger/ledger.h"
#include "policy/devices/devices.h"
#include "pool/stitch/stitcher.h"

namespace ration::policy {

// `best`: granules on devices that have them.
enum class BackingKind { slab, vmm, best };
constexpr const char *name_of(BackingKind kind) {
  return kind == BackingKind::slab ? "slab" : kind == BackingKind::vmm ? "vmm" : "auto";
}

// How granules are made, where the device can: so that other processes can map them, and network cards reach them.
// Aligned to its size, so that an atomic one needs no library.
struct alignas(2) GranuleKind {
  bool exportable = false;
  bool rdma = false;
};

// Design: design/granules.md#granules-by-default
class GranuleSupport {
 public:
  GranuleSupport(Devices &devices, ledger::Ledger &ledger, BackingKind asked)
      : devices_(devices), ledger_(ledger), asked_(asked) {}

  BackingKind asked() const { return asked_; }
  // What pools of a device are made of, as far as its driver says, and why.
  BackingKind backing_on(CUdevice handle, std::string &reason);

  struct Answer {
    std::uint64_t page_bytes = 0;  // 0: it has none
    GranuleKind kind{};
    std::string reason;  // in words, either way
  };
  // Asks the driver, and takes nothing.
  static Answer ask(CUdevice handle);
  // What was noted of a device; nullopt: nothing yet.
  std::optional<Answer> known(int device) const;
  void note(int device, std::uint64_t page_bytes, GranuleKind kind);
  GranuleKind kind(int device) const { return of_[device].kind.load(std::memory_order_relaxed); }

  // Whether too much of a limit that is not in whole pages would be lost. How large granules are for the limit.
  bool loses_much(int device, std::uint64_t page_bytes) const;
  std::uint64_t granule_bytes(int device, std::uint64_t page_bytes) const;

  CUdevice handle_of(int device) const;
  static CUresult create(CUdevice handle, std::uint64_t bytes, GranuleKind kind, CUmemGenericAllocationHandle &granule);
  // For the device and its peers. False, of the second: that one is known.
  CUresult allow_access(int device, std::uint64_t address, std::uint64_t bytes) const noexcept;
  bool add_peer(int device, int peer);
  bool has_peers(int device) const { return of_[device].peers.load() != 0; }

 private:
  static constexpr std::uint64_t kNotKnown = UINT64_MAX;
  struct OfDevice {
    std::atomic<std::uint64_t> page_bytes{kNotKnown};  // 0: the device has none
    std::atomic<GranuleKind> kind{};                   // written before page_bytes is
    std::atomic<std::uint64_t> peers{0};               // a bit for each device that may access this one's memory
  };

  Devices &devices_;
  ledger::Ledger &ledger_;
  const BackingKind asked_;
  OfDevice of_[ledger::kMaxDevices];
};

}  // namespace ration::policy
