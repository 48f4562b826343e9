// Lets only one process at a time read how much memory a device has left and claim some of it. Layer: ledger. Threads:
// one. Owns: a file in the state folder, which the destructor removes. The lock on the file ends with the process.
#pragma once

#include <string>

#include "ledger/group_file.h"

namespace ration::ledger {

class AdmissionLock {
 public:
  // Tries to take the lock without waiting.
  explicit AdmissionLock(const std::string &state_folder);
  ~AdmissionLock();
  AdmissionLock(const AdmissionLock &) = delete;
  AdmissionLock &operator=(const AdmissionLock &) = delete;

  // False if another process has the lock, or if the file could not be opened in the folder.
  explicit operator bool() const { return static_cast<bool>(file_); }

 private:
  Descriptor folder_, file_;
};

}  // namespace ration::ledger
