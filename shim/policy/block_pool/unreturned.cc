#include "policy/block_pool/unreturned.h"

#include "driver/functions.h"
#include "policy/contexts/captures.h"

namespace ration::policy {

using driver::real;

void Unreturned::add(const Entry &entry) noexcept try {
  std::list<Entry> one{entry};
  const Guard guard(mutex_);
  entries_.splice(entries_.end(), one);
  count_.fetch_add(1, std::memory_order_relaxed);
} catch (...) {
}

void Unreturned::add_mapping(int device, std::uint64_t address, std::uint64_t bytes, std::uint64_t charged) noexcept {
  add({Kind::mapping, device, address, bytes, charged});
}

void Unreturned::add_handle(int device, std::uint64_t handle, std::uint64_t charged) noexcept {
  add({Kind::handle, device, handle, 0, charged});
}

void Unreturned::give_up(const pool::stitch::Layout &layout) noexcept {
  const Entry entry{Kind::addresses, -1, layout.home, layout.home_bytes + layout.views_bytes, 0};
  if (!returns(entry)) {
    add(entry);
  }
}

bool Unreturned::returns(const Entry &entry) noexcept {
  switch (entry.kind) {
    case Kind::mapping:
      return real.cuMemUnmap(entry.name, entry.bytes) == CUDA_SUCCESS;
    case Kind::handle:
      return real.cuMemRelease(entry.name) == CUDA_SUCCESS;
    case Kind::addresses:
      return real.cuMemAddressFree(entry.name, entry.bytes) == CUDA_SUCCESS;
  }
  return false;
}

void Unreturned::retry_all() noexcept {
  std::list<Entry> all;  // another thread finds none meanwhile
  {
    const Guard guard(mutex_);
    all.swap(entries_);
  }
  const RelaxedCapture relaxed;
  for (const Kind kind : {Kind::mapping, Kind::handle, Kind::addresses}) {
    all.remove_if([&](const Entry &entry) {
      if (entry.kind != kind || !returns(entry)) {
        return false;
      }
      if (entry.charged != 0) {
        ledger_.account(entry.device).release(entry.charged);
      }
      count_.fetch_sub(1, std::memory_order_relaxed);
      return true;
    });
  }
  const Guard guard(mutex_);
  entries_.splice(entries_.end(), all);
}

}  // namespace ration::policy
