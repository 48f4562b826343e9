#include "policy/block_pool/cleaning.h"

#include "base/clock.h"
#include "base/wait.h"

namespace ration::policy {

bool Cleaning::collect(bool may_grow) {
  Quarantine &quarantine = call_.device.quarantine;
  seen_retired_ = quarantine.retired();
  seen_cleaned_ = quarantine.reclaimed();
  const std::uint64_t held = quarantine.bytes();
  // A program that frees and allocates in turn must not pay for this at every block.
  if (may_grow && held + call_.request.upper_bound <= call_.device.bounds.slack_bytes()) {
    return false;
  }
  const Quarantine::Cleaned cleaned =
      quarantine.collect(may_grow ? Quarantine::Sealing::worthwhile : Quarantine::Sealing::always);
  error_ = cleaned.error;  // also clears the error of an earlier call
  if (cleaned.blocks > 0) {
    return true;
  }
  return may_grow && held > quarantine.pace().cap_bytes() && cleaned.error == CUDA_SUCCESS && !cleaned.capturing &&
         drain_briefly();
}

// Enforces the cap on quarantined bytes. Bounded in time: the device's work may wait for this call to return.
bool Cleaning::drain_briefly() {
  if (drained_briefly_ || !fences_.by_events()) {
    return false;
  }
  drained_briefly_ = true;
  const std::uint64_t start = now_ns();
  Quarantine::Cleaned cleaned;
  Backoff backoff;
  while (cleaned.blocks == 0 && cleaned.error == CUDA_SUCCESS && now_ns() - start < kBrieflyNs) {
    backoff.sleep();
    cleaned = call_.device.quarantine.collect(Quarantine::Sealing::worthwhile);
  }
  error_ = cleaned.error;
  call_.device.record_wait(call_.request.api, "poll", cleaned, start);
  return cleaned.blocks > 0;
}

bool Cleaning::wait() {
  for (Backoff backoff;; backoff.sleep()) {
    const std::uint64_t start = now_ns();
    const Quarantine::Cleaned cleaned = call_.device.quarantine.wait(seen_cleaned_);
    error_ = cleaned.error;
    if (cleaned.waited) {
      call_.device.record_wait(call_.request.api, fences_.by_events() ? "event" : "synchronize", cleaned, start);
    }
    if (cleaned.blocks > 0 || cleaned.others_cleaned) {
      return true;
    }
    capturing_ = cleaned.capturing;
    if (cleaned.error != CUDA_SUCCESS || !cleaned.capturing || !fences_.captures().run_elsewhere_only()) {
      return false;
    }
    if (capture_deadline_ns_ == 0) {
      capture_deadline_ns_ = start + kCapturePatienceNs;
    } else if (start > capture_deadline_ns_) {
      return false;
    }
  }
}

bool Cleaning::overtaken() const {
  if (capturing_ || call_.device.quarantine.retired() == seen_retired_) {
    return false;
  }
  const pool::Statistics now = call_.pool.blocks.statistics();
  return now.free_bytes + now.retired_bytes >= call_.request.upper_bound;
}

}  // namespace ration::policy
