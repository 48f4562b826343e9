// Keeps what each device's driver reports about its support for granules, creates granules and gives access to them.
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

// `best`: granules on devices that have them, slabs on the others.
enum class BackingKind { slab, vmm, best };
constexpr const char *name_of(BackingKind kind) {
  return kind == BackingKind::slab ? "slab" : kind == BackingKind::vmm ? "vmm" : "auto";
}

// The uses that granules allow if the device supports them: mapping by other processes, and access by network cards.
// The alignment equals the size, so that an atomic GranuleKind needs no library.
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
  // The backing of a device's pools, according to its driver, and the reason for it.
  BackingKind backing_on(CUdevice handle, std::string &reason);

  struct Answer {
    std::uint64_t page_bytes = 0;  // 0: the device has no granules
    GranuleKind kind{};
    std::string reason;  // why it has granules, or why not
  };
  // Asks the driver; allocates nothing.
  static Answer ask(CUdevice handle);
  // The answer that was noted for a device; nullopt if there is none yet.
  std::optional<Answer> known(int device) const;
  void note(int device, std::uint64_t page_bytes, GranuleKind kind);
  GranuleKind kind(int device) const { return of_[device].kind.load(std::memory_order_relaxed); }

  // loses_much(): whether granules would leave unused too much of a limit that is not a whole number of pages.
  // granule_bytes(): the size of granules under the device's limit.
  bool loses_much(int device, std::uint64_t page_bytes) const;
  std::uint64_t granule_bytes(int device, std::uint64_t page_bytes) const;

  CUdevice handle_of(int device) const;
  static CUresult create(CUdevice handle, std::uint64_t bytes, GranuleKind kind, CUmemGenericAllocationHandle &granule);
  // allow_access() gives access to the device and its peers. add_peer() returns false if the peer is known already.
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
