// Physical memory of another process that is mapped into this one: the granules of one of its blocks. Layer:
// policy/imports. Threads: any; driver calls and I/O, so no lock may be held. Owns: the mapping, which keeps the memory
// alive; the memory stays charged to its exporter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/functions.h"
#include "ledger/part_socket.h"

namespace ration::policy {

class ImportedGranules {
 public:
  // Gets the parts from the exporter and maps them, with access for the current context's device and for the device of
  // the memory. REQUIRES: a lease on the block. INVALID_VALUE if the exporter does not answer; `problem` says so.
  static CUresult map(const std::string &state_folder, const ledger::ExportToken &token,
                      const ledger::ExportedBlock &block, std::unique_ptr<ImportedGranules> &made,
                      std::string &problem);
  ~ImportedGranules();
  ImportedGranules(const ImportedGranules &) = delete;
  ImportedGranules &operator=(const ImportedGranules &) = delete;

  CUdeviceptr base() const { return base_; }
  // Gives `device` access to the mapping. Returns false if the driver refused.
  bool allow(CUdevice device) const noexcept;

 private:
  ImportedGranules(CUdeviceptr base, std::uint64_t bytes) : base_(base), bytes_(bytes) {}
  CUresult take(const ledger::Parts &parts);
  CUresult allow_access(CUdevice current) const noexcept;

  const CUdeviceptr base_;
  const std::uint64_t bytes_;
  std::uint64_t mapped_ = 0;
  CUdevice device_ = -1;  // of the memory; -1: the driver does not report it
};

}  // namespace ration::policy
