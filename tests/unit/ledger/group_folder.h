// A test's own state folder, and groups in it. Destroying a membership simulates the death of its process.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "ledger/membership.h"
#include "unit/events/scratch_folder.h"

// The UUID of a device.
inline constexpr char kUuid[] = "GPU-01234567-89ab-cdef-fedc-ba9876543210";

class GroupFolder {
 public:
  const std::string &path() const { return folder_.path(); }
  std::unique_ptr<ration::ledger::Membership> join(
      const std::string &name = "g", ration::ledger::GroupKind kind = ration::ledger::GroupKind::kNamed) const {
    std::string problem;
    auto member = ration::ledger::Membership::join(path(), kind, name, ration::ledger::this_process(), problem);
    if (member == nullptr) {
      throw std::runtime_error(problem);
    }
    return member;
  }

 private:
  ration::test::ScratchFolder folder_;
};
