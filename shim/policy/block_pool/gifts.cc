#include "policy/block_pool/gifts.h"

#include <algorithm>

#include "base/clock.h"
#include "base/saturating.h"
#include "events/diagnostics.h"

namespace ration::policy {
namespace {

constexpr std::uint64_t kGaveLatelyNs = 10'000'000;

}  // namespace

// A stitched block of any size changes a published count. A call that publishes touches shared memory anyway, so it
// also looks there for wishes.
void Gifts::note_change(const char *api, DevicePool &device, bool stitched) noexcept {
  if (stitched || device.account.is_worth_publishing(device.used())) {
    publication_.publish(device.device);
    give_to_others(api, device.device);
  }
}

void Gifts::after_synchronise(int device) noexcept {
  returning_.clean_to_threshold("cuCtxSynchronize", device);
  give_to_others("cuCtxSynchronize", device);
}

void Gifts::give_to_others(const char *api, int device) noexcept {
  ledger::Account &account = parts_.ledger.account(device);
  const std::uint64_t held = account.charged();
  // What this process gives out of its own guarantee, no other process may take. What it gives out of the guarantee of
  // a group tree, others in that tree may.
  const std::uint64_t wanted = std::min(account.newly_wanted(), minus_or_zero(held, account.own_guarantee()));
  if (wanted == 0) {
    return;
  }
  const bool gave = room_.give_away(api, device, wanted);
  events::explain(events::Level::debug, "device ", device, ": another process lacks ", wanted, " bytes; ",
                  minus_or_zero(held, account.charged()), " are given back");
  if (gave) {
    account.answered();
    gave_ns_[device].store(now_ns(), std::memory_order_relaxed);
  }
}

bool Gifts::gave_lately(int device) const {
  const std::uint64_t gave_ns = gave_ns_[device].load(std::memory_order_relaxed);
  return gave_ns != 0 && now_ns() - gave_ns < kGaveLatelyNs;
}

bool Gifts::is_beyond_order(int device, std::uint64_t bytes) {
  const ledger::Account &account = parts_.ledger.account(device);
  if (!account.is_over_order()) {
    return false;
  }
  const std::uint64_t used = parts_.journal.live_bytes(device);
  const std::uint64_t charged = account.charged();
  return used + bytes > minus_or_zero(charged, account.excess());
}

void Gifts::heed_orders(const char *api) noexcept {
  for (int device = 0; device < ledger::kMaxDevices; ++device) {
    parts_.devices.heed(device);
    const ledger::Account &account = parts_.ledger.account(device);
    if (!account.is_over_order()) {
      continue;
    }
    events::explain(events::Level::debug, "device ", device, ": `ration set` leaves ", account.excess(),
                    " bytes too many: what is free goes back");
    if (DevicePool *pool = pools_.known(device)) {
      parts_.context_pools.close_all(device);
      pool->quarantine.collect(Quarantine::Sealing::always);
    }
    room_.give_away(api, device, account.excess());
    publication_.publish(device);
  }
}

void Gifts::look_after() noexcept {
  pools_.each([this](const DevicePool &pool) { returning_.clean_to_threshold("idle", pool.device); });
  heed_orders("idle");
  publication_.publish_all_exactly();
}

}  // namespace ration::policy
