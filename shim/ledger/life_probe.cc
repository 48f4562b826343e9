#include "ledger/life_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>

#include "base/out_of_reach.h"

namespace ration::ledger {
namespace {

constexpr int kNone = -1;
constexpr int kTaken = -2;

// A fork may come between any two stores; a child that finds an inconsistent set keeps the descriptor, which holds no
// lock.
struct Kept {
  std::atomic<int> number{kNone};
  std::atomic<dev_t> device{0};
  std::atomic<ino_t> inode{0};

  bool is_there() const {
    FileIdentity found;
    const int kept = number.load(std::memory_order_acquire);
    return kept >= 0 && identify(kept, found) &&
           found == FileIdentity{device.load(std::memory_order_relaxed), inode.load(std::memory_order_relaxed)};
  }
  // The number may be the program's by now.
  void end() {
    const bool ours = is_there();
    const int kept = number.exchange(kNone, std::memory_order_acq_rel);
    if (ours && kept >= 0) {
      close(kept);
    }
  }
};

constexpr int kMostKept = 8;  // more groups than a program is in
constinit Kept all_kept[kMostKept];

}  // namespace

LifeProbe::~LifeProbe() {
  if (kept_ >= 0) {
    all_kept[kept_].end();
  }
}

void LifeProbe::keep(Descriptor opened) {
  for (int place = 0; place < kMostKept; ++place) {
    Kept &kept = all_kept[place];
    int none = kNone;
    if (kept.number.compare_exchange_strong(none, kTaken, std::memory_order_acq_rel)) {
      kept.device.store(identity_.device, std::memory_order_relaxed);
      kept.inode.store(identity_.inode, std::memory_order_relaxed);
      kept.number.store(out_of_reach(opened.release()), std::memory_order_release);
      kept_ = place;
      return;
    }
  }
}

LifeProbe::Look LifeProbe::look(std::string &problem) const {
  problem.clear();
  if (kept_ >= 0 && all_kept[kept_].is_there()) {
    return Look(all_kept[kept_].number.load(std::memory_order_relaxed));
  }
  Descriptor opened = open_group_file(AT_FDCWD, path_, problem);
  FileIdentity found;
  if (opened && identify(opened.number(), found) && found == identity_) {
    return Look(std::move(opened));
  }
  problem = path_ + ": " + (problem.empty() ? "it is not there any more" : problem);
  return Look();
}

void close_inherited_probes() {
  for (Kept &kept : all_kept) {
    kept.end();
  }
}

}  // namespace ration::ledger
