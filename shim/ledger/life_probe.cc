#include "ledger/life_probe.h"

#include <fcntl.h>

#include "ledger/kept_descriptor.h"

namespace ration::ledger {
namespace {

constexpr int kMostKept = 8;  // more than the number of groups that a process joins
constinit KeptDescriptor all_kept[kMostKept];

}  // namespace

LifeProbe::~LifeProbe() {
  if (kept_ >= 0) {
    all_kept[kept_].end();
  }
}

void LifeProbe::keep(Descriptor opened) {
  for (int place = 0; place < kMostKept; ++place) {
    if (all_kept[place].claim()) {
      all_kept[place].keep(std::move(opened), identity_);
      kept_ = place;
      return;
    }
  }
}

LifeProbe::Look LifeProbe::look(std::string &problem) const {
  problem.clear();
  if (kept_ >= 0 && all_kept[kept_].is_there()) {
    return Look(all_kept[kept_].number());
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
  for (KeptDescriptor &kept : all_kept) {
    kept.end();
  }
}

}  // namespace ration::ledger
