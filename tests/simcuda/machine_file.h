// The machine's file: made or opened, mapped, and locked by byte. A lock belongs to an open file description; the
// mapping made through it keeps it after the descriptor is closed, and the kernel drops it when the process dies.
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
  ~MachineFile();  // closes the descriptor; locks stay while a mapping of it does

  bool valid() const { return descriptor_ >= 0; }
  bool lock_slot(unsigned slot);  // true: free until now, and ours
  void unlock_slot(unsigned slot);
  // The page, filled in by the first process; null when it cannot be had.
  MachinePage *map(const Settings &settings);

 private:
  explicit MachineFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

void fill_in(MachinePage *page, const Settings &settings);

}  // namespace simcuda
