// A state folder of a test's own, and groups in it. A membership that is destroyed is a process that died.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "ledger/membership.h"

class GroupFolder {
 public:
  GroupFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "ration-ledger-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      throw std::runtime_error("no folder");
    }
    path_ = path;
  }
  ~GroupFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  GroupFolder(const GroupFolder &) = delete;
  GroupFolder &operator=(const GroupFolder &) = delete;

  const std::string &path() const { return path_; }
  std::unique_ptr<ration::ledger::Membership> join(
      const std::string &name = "g", ration::ledger::GroupKind kind = ration::ledger::GroupKind::kNamed) const {
    std::string problem;
    auto member = ration::ledger::Membership::join(path_, kind, name, ration::ledger::this_process(), problem);
    if (member == nullptr) {
      throw std::runtime_error(problem);
    }
    return member;
  }

 private:
  std::string path_;
};
