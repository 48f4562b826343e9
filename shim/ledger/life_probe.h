// Gives a member a descriptor with which to check the life bytes of the other members. The descriptor is kept from the
// time of joining, because a process that later changes its user or root folder can no longer open the file. If the
// program has closed the descriptor, the file is opened again. Layer: ledger. Threads: any; one creates and ends it.
// Owns: the descriptor.
#pragma once

#include <string>

#include "base/file_identity.h"
#include "ledger/group_file.h"

namespace ration::ledger {

// Design: design/ledger.md#kept-probe
class LifeProbe {
 public:
  LifeProbe() = default;
  // Keeps no descriptor, so each look() opens the file.
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

  // Keeps `opened` under a high number, unless the process already keeps too many probes; forked children close it.
  // REQUIRES: `opened` has an open file description of its own; no fork meanwhile.
  void keep(Descriptor opened);

  // A descriptor for one search. At any moment, another thread of the program may close it and open another file under
  // its number, so an answer about a life byte is valid only if the member's own byte is seen to be locked afterwards.
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
  // If the result is empty, `problem` gives the path and the reason.
  Look look(std::string &problem) const;
  const std::string &path() const { return path_; }

 private:
  std::string path_;
  FileIdentity identity_;
  int kept_ = -1;  // its index in the list of descriptors that forked children close
};

// REQUIRES: called in a forked child.
void close_inherited_probes();

}  // namespace ration::ledger
