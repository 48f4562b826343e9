// Lets one process at a time look at what a device has left and claim it. Layer: ledger. Threads: one.
// Owns: a file of the state folder, which it removes. Its lock ends with the process.
#pragma once

#include <string>

#include "ledger/group_file.h"

namespace ration::ledger {

class AdmissionLock {
 public:
  // Does not wait.
  explicit AdmissionLock(const std::string &state_folder);
  ~AdmissionLock();
  AdmissionLock(const AdmissionLock &) = delete;
  AdmissionLock &operator=(const AdmissionLock &) = delete;

  // False: another process has it, or the folder keeps no such file.
  explicit operator bool() const { return static_cast<bool>(file_); }

 private:
  Descriptor folder_, file_;
};

}  // namespace ration::ledger
