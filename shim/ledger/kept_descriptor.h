// A long-lived descriptor of Ration. The program may close it and open another file under its number, so a high number
// is chosen, and each use checks that the file is still Ration's. Forked children end() the descriptor. Layer: ledger.
// Threads: one at a time keeps and ends it; any thread may look at it. Owns: the descriptor; constant-initialised.
#pragma once

#include <atomic>

#include "base/file_identity.h"
#include "ledger/group_file.h"

namespace ration::ledger {

// A fork may happen between any two stores; a child that finds inconsistent members does not close the descriptor.
class KeptDescriptor {
 public:
  constexpr KeptDescriptor() = default;
  KeptDescriptor(const KeptDescriptor &) = delete;
  KeptDescriptor &operator=(const KeptDescriptor &) = delete;

  // Reserves this object for a keep() by the caller. Returns false if it is in use.
  bool claim();
  void keep(Descriptor opened, const FileIdentity &identity);
  // Like the other keep(), but determines the identity of the file itself. Returns false if the descriptor refers to no
  // file; the descriptor is then closed.
  bool keep(Descriptor opened);
  [[nodiscard]] bool is_there() const;
  // REQUIRES: is_there().
  [[nodiscard]] int number() const { return number_.load(std::memory_order_relaxed); }
  // Closes the descriptor, unless the number now refers to another file.
  void end();

 private:
  static constexpr int kNone = -1;
  static constexpr int kClaimed = -2;

  std::atomic<int> number_{kNone};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
};

}  // namespace ration::ledger
