// The file in which a process lists the blocks that it shares, and the locks that the openers of these blocks take on
// the file. It is in the state folder; its name is `ipc-` and 16 hex digits.
// Layer: ledger. Threads: one at a time for publish and end; any for the rest. Owns: its mapping.
// Until its process ends, the exporter holds a lock on the file's first life byte (life_byte.h). The file is removed
// once none of its life bytes is locked.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/file_identity.h"
#include "ledger/export_layout.h"
#include "ledger/group_file.h"

namespace ration::ledger {

using ExportNonce = std::array<std::uint64_t, 2>;
ExportNonce export_nonce();

class ExportFile {
 public:
  // Creates the file under an unused name. On failure returns nullptr, and `problem` says why.
  static std::unique_ptr<ExportFile> make(const std::string &state_folder, std::string &problem);
  ~ExportFile();
  ExportFile(const ExportFile &) = delete;
  ExportFile &operator=(const ExportFile &) = delete;

  std::uint64_t exporter() const { return exporter_; }
  // True if the file still has its full length; otherwise nothing may be published. Costs one system call.
  bool has_pages() const;
  std::string path() const { return folder_ + "/" + name_; }

  // Only writes to the mapping. REQUIRES: the record is new, or it has ended and a later Snapshot shows no opener.
  ExportToken publish(std::uint32_t record, const ExportedBlock &block, const ExportNonce &nonce);
  void end(std::uint32_t record);

  // A snapshot of which records are open. An opener takes a shared lock on the record's byte, then checks the record;
  // the exporter ends the record, then checks the lock. At least one of the two sees the other's step, so an open block
  // is never reused. When an opener dies, the kernel drops the opener's lock before it closes the opener's device, so a
  // record with an opener that is ending still counts as open. If the file has lost its name or was cut short, every
  // record counts as open.
  class Snapshot {
   public:
    explicit Snapshot(const ExportFile &file);
    bool is_open(std::uint32_t record) const;
    bool none_open() const;  // no record is open

   private:
    const ExportFile &records_;
    Descriptor file_;
  };

  // Removes the file if no record is open. Called when the process ends; keeps the mapping and the lock.
  void remove_if_unused() const;

 private:
  ExportFile() = default;
  shared::ExportRecord &record(std::uint32_t index) const;
  bool has_ending_opener(std::uint32_t index) const;
  bool set_up(int folder, int descriptor, const std::string &temporary, std::string &problem);

  shared::ExportHeader *header_ = nullptr;
  std::uint64_t exporter_ = 0;
  std::string folder_;
  std::string name_;
  FileIdentity identity_;
};

// The name of an exporter's file, and a test whether `name` is such a name.
std::string export_file_name(std::uint64_t exporter);
bool is_export_file(const std::string &name);

}  // namespace ration::ledger
