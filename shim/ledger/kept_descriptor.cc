#include "ledger/kept_descriptor.h"

#include <unistd.h>

#include "base/out_of_reach.h"

namespace ration::ledger {

bool KeptDescriptor::claim() {
  int none = kNone;
  return number_.compare_exchange_strong(none, kClaimed, std::memory_order_acq_rel);
}

void KeptDescriptor::keep(Descriptor opened, const FileIdentity &identity) {
  device_.store(identity.device, std::memory_order_relaxed);
  inode_.store(identity.inode, std::memory_order_relaxed);
  number_.store(out_of_reach(opened.release()), std::memory_order_release);
}

bool KeptDescriptor::keep(Descriptor opened) {
  FileIdentity identity;
  if (!opened || !identify(opened.number(), identity)) {
    return false;
  }
  keep(std::move(opened), identity);
  return true;
}

bool KeptDescriptor::is_there() const {
  FileIdentity found;
  const int kept = number_.load(std::memory_order_acquire);
  return kept >= 0 && identify(kept, found) &&
         found == FileIdentity{device_.load(std::memory_order_relaxed), inode_.load(std::memory_order_relaxed)};
}

void KeptDescriptor::end() {
  const bool ours = is_there();
  const int kept = number_.exchange(kNone, std::memory_order_acq_rel);
  if (ours && kept >= 0) {
    close(kept);
  }
}

}  // namespace ration::ledger
