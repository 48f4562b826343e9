#include "ledger/export_lease.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/fork_exclusion.h"
#include "ledger/export_file.h"
#include "ledger/join_descriptor.h"
#include "ledger/life_byte.h"
#include "ledger/process_end.h"
#include "ledger/process_identity.h"
#include "ledger/shared_mapping.h"

namespace ration::ledger {
namespace {

using shared::ExportHeader;
using shared::ExportRecord;

bool is_ours(const ExportHeader &header, std::uint64_t exporter) {
  return header.magic == shared::kExportMagic && header.version == shared::kExportVersion &&
         header.header_bytes == sizeof(ExportHeader) && header.record_bytes == sizeof(ExportRecord) &&
         header.records == shared::kExportRecords && header.exporter == exporter;
}

ExportedBlock block_of(const ExportRecord &record) {
  ExportedBlock block;
  block.offset = record.offset.load(std::memory_order_relaxed);
  block.bytes = record.bytes.load(std::memory_order_relaxed);
  block.slab_bytes = record.slab_bytes.load(std::memory_order_relaxed);
  block.kind = static_cast<ExportKind>(record.kind.load(std::memory_order_relaxed));
  std::uint64_t words[8];
  for (std::size_t i = 0; i < 8; ++i) {
    words[i] = record.handle[i].load(std::memory_order_relaxed);
  }
  std::memcpy(block.handle, words, sizeof(block.handle));
  return block;
}

}  // namespace

ExportLease::~ExportLease() {
  if (header_ != nullptr) {
    leave();
    munmap(header_, shared::kExportBytes);
  }
}

ExportRecord &ExportLease::record() const {
  return reinterpret_cast<ExportRecord *>(reinterpret_cast<char *>(header_) + sizeof(ExportHeader))[index_];
}

void ExportLease::enter() {
  const ProcessMark mark = this_process_mark();
  if (mark == 0 || header_->pid_namespace == 0 || header_->pid_namespace != this_pid_namespace()) {
    return;
  }
  address_space_ = this_address_space();
  for (shared::ExportWord &place : record().opener) {
    std::uint64_t none = 0;
    if (place.compare_exchange_strong(none, mark)) {
      place_ = &place;
      return;
    }
  }
}

void ExportLease::leave() {
  if (place_ != nullptr && address_space_ == this_address_space() && has_pages(header_, shared::kExportBytes)) {
    place_->store(0);
  }
}

bool ExportLease::is_live() const {
  return has_pages(header_, shared::kExportBytes) && record().state.load() == live_state_;
}

// Locks first, then checks the record. A process that dies in between leaves no lock.
bool ExportLease::lock(int descriptor, const ExportToken &token, std::string &problem) {
  struct stat found {};
  if (fstat(descriptor, &found) != 0 || found.st_size < static_cast<off_t>(shared::kExportBytes)) {
    problem = "it was cut short";
    return false;
  }
  header_ = static_cast<ExportHeader *>(map_shared(descriptor, shared::kExportBytes));
  if (header_ == nullptr) {
    problem = error_text(errno);
    return false;
  }
  if (!is_ours(*header_, token.exporter)) {
    problem = "it is not a file of this version of Ration";
    return false;
  }
  index_ = token.record;
  live_state_ = token.generation << 1 | 1;
  if (share_life(descriptor, shared::life_of_record(index_)) != LifeLock::taken) {
    return false;
  }
  if (!is_live() || is_dead(descriptor, shared::kExporterLife) ||
      record().nonce[0].load(std::memory_order_relaxed) != token.nonce[0] ||
      record().nonce[1].load(std::memory_order_relaxed) != token.nonce[1]) {
    return false;
  }
  block_ = block_of(record());
  enter();
  return block_.bytes <= block_.slab_bytes && block_.offset <= block_.slab_bytes - block_.bytes;
}

std::unique_ptr<ExportLease> ExportLease::take(const std::string &state_folder, const ExportToken &token,
                                               std::string &problem) {
  problem.clear();
  if (token.magic != ExportToken::kMagic || token.record >= shared::kExportRecords || state_folder.empty()) {
    return nullptr;
  }
  if (token.version != shared::kExportVersion) {
    problem = "a block was shared by another version of Ration; use one version in all processes";
    return nullptr;
  }
  const std::string name = export_file_name(token.exporter);
  std::unique_ptr<ExportLease> lease(new ExportLease());
  const JoinGate gate;
  const ForkExclusion exclusion;
  const Descriptor folder = open_state_folder(state_folder, false, problem);
  if (!folder) {
    problem = problem.empty() ? "" : state_folder + ": " + problem;
    return nullptr;
  }
  JoinDescriptor opened;
  opened.take(open_group_file(folder.number(), name, problem));
  const bool taken = opened && lease->lock(opened.number(), token, problem);
  if (taken) {
    return lease;
  }
  if (opened) {
    // explicit, because a forked child may have the descriptor too
    unlock_life(opened.number(), shared::life_of_record(token.record));
  }
  problem = problem.empty() ? "" : state_folder + "/" + name + ": " + problem;
  return nullptr;
}

}  // namespace ration::ledger
