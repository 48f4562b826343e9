// The machine's file: created or opened, mapped, and locked by byte. A lock belongs to an open file description. The
// mapping keeps that description after the descriptor is closed, and the kernel drops the lock when the process dies.
// Layer: machine.h. Threads: any.
#pragma once
#include <string>
#include <utility>

#include "tests/simcuda/machine.h"

namespace simcuda {

inline constexpr std::uint64_t kMachineMagic = 0x656e696863616d73ull;  // "smachine"
inline constexpr std::uint32_t kMachineVersion = 1;

class MachineFile {
 public:
  static MachineFile open(const std::string &path, bool create);
  static MachineFile none() { return MachineFile(-1); }
  MachineFile(MachineFile &&other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  MachineFile &operator=(MachineFile &&other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~MachineFile();  // closes the descriptor; locks last as long as a mapping of the file

  bool valid() const { return descriptor_ >= 0; }
  bool lock_slot(unsigned slot);  // true if it was free and is now locked by this process
  void unlock_slot(unsigned slot);
  // The page, initialised by the first process; null if it cannot be mapped.
  MachinePage *map(const Settings &settings);

 private:
  explicit MachineFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

void fill_in(MachinePage *page, const Settings &settings);

}  // namespace simcuda
