// The file in which a process says which blocks it shares, `ipc-` and 16 hex digits in the state folder; and who has
// them open. Layer: ledger. Threads: publish and end one at a time; the rest any. Owns: its mapping.
//
// The exporter holds the file's first life byte (life_byte.h) as long as it lives. Who opens a block takes a shared
// lock on the byte of its record and looks at the record then; the exporter says that a block has ended and looks at
// the lock then: one of the two sees the other, so no block is used again that somebody has open. The kernel drops the
// lock of an opener that dies. The file goes when none of its bytes is locked.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "ledger/export_layout.h"
#include "ledger/group_file.h"

namespace ration::ledger {

using ExportNonce = std::array<std::uint64_t, 2>;
ExportNonce export_nonce();

class ExportFile {
 public:
  // Under a name that nobody has. nullptr: `problem` says why.
  static std::unique_ptr<ExportFile> make(const std::string &state_folder, std::string &problem);
  ~ExportFile();
  ExportFile(const ExportFile &) = delete;
  ExportFile &operator=(const ExportFile &) = delete;

  std::uint64_t exporter() const { return header_->exporter; }
  std::string path() const { return folder_ + "/" + name_; }

  // Memory only. REQUIRES: the record is new, or has ended and was seen to be nobody's since.
  ExportToken publish(std::uint32_t record, const ExportedBlock &block, const ExportNonce &nonce);
  void end(std::uint32_t record);

  // A look at who has what open. Where the file lost its name everything counts as open.
  class Look {
   public:
    explicit Look(const ExportFile &file);
    bool is_anybodys(std::uint32_t record) const;
    bool is_nobodys() const;  // none of the records

   private:
    Descriptor file_;
  };

  // Removes the file if nobody has anything open. For the end of the process: its mapping and life byte stay.
  void remove_if_unused() const;

 private:
  ExportFile() = default;
  shared::ExportRecord &record(std::uint32_t index) const;
  bool set_up(int folder, int descriptor, const std::string &passing, std::string &problem);

  shared::ExportHeader *header_ = nullptr;
  std::string folder_;
  std::string name_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// What a file of an exporter is called, and whether a name is one's.
std::string export_file_name(std::uint64_t exporter);
bool is_export_file(const std::string &name);

}  // namespace ration::ledger
