#include "ledger/admission_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/open_beyond_streams.h"
#include "ledger/life_byte.h"

namespace ration::ledger {
namespace {

constexpr char kName[] = ".new-admission";  // a temporary name: a reader of the folder removes the unlocked file

}  // namespace

AdmissionLock::AdmissionLock(const std::string &state_folder) {
  std::string problem;
  folder_ = open_state_folder(state_folder, true, problem);
  if (!folder_) {
    return;
  }
  Descriptor file(
      open_beyond_streams(folder_.number(), kName, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
  if (file && lock_life(file.number(), 0) == LifeLock::taken && has_name(file.number(), folder_.number(), kName)) {
    file_ = std::move(file);
  }
}

AdmissionLock::~AdmissionLock() {
  if (file_) {
    unlinkat(folder_.number(), kName, 0);
  }
}

}  // namespace ration::ledger
