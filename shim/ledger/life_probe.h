// How a member sees the life bytes of the others: by a descriptor that it keeps from joining on, because a process that
// has changed its user or its root folder since can no longer open the file; or by one opened anew, where the program
// has closed that. Layer: ledger. Threads: any; made and ended by one. Owns: the descriptor.
#pragma once

#include <string>

#include "base/file_identity.h"
#include "ledger/group_file.h"

namespace ration::ledger {

// Design: design/ledger.md#kept-probe
class LifeProbe {
 public:
  LifeProbe() = default;
  // Without a descriptor: each look opens the file.
  LifeProbe(std::string path, FileIdentity identity) : path_(std::move(path)), identity_(identity) {}
  LifeProbe(LifeProbe &&other) noexcept
      : path_(std::move(other.path_)), identity_(other.identity_), kept_(std::exchange(other.kept_, -1)) {}
  LifeProbe &operator=(LifeProbe &&other) noexcept {
    std::swap(path_, other.path_);
    std::swap(identity_, other.identity_);
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~LifeProbe();

  // REQUIRES: a descriptor of the file with a description of its own; no fork meanwhile. A process keeps a few, under
  // high numbers; forked children close them.
  void keep(Descriptor opened);

  // A descriptor for one search. Another thread may close it and open another file at any moment: an answer about a
  // life byte is true only if the member's own byte is seen to be locked after it.
  class Look {
   public:
    explicit Look(int kept = -1) : number_(kept) {}
    explicit Look(Descriptor opened) : opened_(std::move(opened)), number_(opened_.number()) {}
    explicit operator bool() const { return number_ >= 0; }
    int number() const { return number_; }

   private:
    Descriptor opened_;
    int number_;
  };
  // Empty: `problem` says why, beginning with the path.
  Look look(std::string &problem) const;
  const std::string &path() const { return path_; }

 private:
  std::string path_;
  FileIdentity identity_;
  int kept_ = -1;  // its place in the list of those that forked children close
};

// REQUIRES: a forked child.
void close_inherited_probes();

}  // namespace ration::ledger
