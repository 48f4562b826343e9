// A descriptor of ours that stays open for long. The program may close it, and open another file under its number, so
// it has a high one, and each use checks that it still is the file. Forked children end() it. Layer: ledger. Threads:
// one keeps and ends at a time; any looks. Owns: the descriptor; constant-initialised.
#pragma once

#include <atomic>

#include "base/file_identity.h"
#include "ledger/group_file.h"

namespace ration::ledger {

// A fork may come between any two stores; a child that finds an inconsistent set keeps the descriptor.
class KeptDescriptor {
 public:
  constexpr KeptDescriptor() = default;
  KeptDescriptor(const KeptDescriptor &) = delete;
  KeptDescriptor &operator=(const KeptDescriptor &) = delete;

  // For the caller to keep() one here. False: it is in use.
  bool claim();
  void keep(Descriptor opened, const FileIdentity &identity);
  // As keep(), of what the descriptor refers to now. False: it refers to nothing, and is closed.
  bool keep(Descriptor opened);
  [[nodiscard]] bool is_there() const;
  // REQUIRES: is_there().
  [[nodiscard]] int number() const { return number_.load(std::memory_order_relaxed); }
  // Closes it, unless the number is the program's by now.
  void end();

 private:
  static constexpr int kNone = -1;
  static constexpr int kClaimed = -2;

  std::atomic<int> number_{kNone};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
};

}  // namespace ration::ledger
