#include "ledger/export_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/fork_exclusion.h"
#include "base/open_beyond_streams.h"
#include "ledger/join_descriptor.h"
#include "ledger/life_byte.h"
#include "ledger/process_end.h"
#include "ledger/process_identity.h"
#include "ledger/shared_mapping.h"

namespace ration::ledger {
namespace {

using shared::ExportHeader;
using shared::ExportRecord;

constexpr char kPrefix[] = "ipc-";
constexpr int kTries = 100;

bool write_header(int descriptor, std::uint64_t exporter) {
  ExportHeader header{};
  header.magic = shared::kExportMagic;
  header.version = shared::kExportVersion;
  header.header_bytes = sizeof(ExportHeader);
  header.record_bytes = sizeof(ExportRecord);
  header.records = shared::kExportRecords;
  header.exporter = exporter;
  header.pid_namespace = this_pid_namespace();
  return pwrite(descriptor, &header, sizeof(header), 0) == static_cast<ssize_t>(sizeof(header));
}

}  // namespace

ExportNonce export_nonce() {
  return {random_number(), random_number()};
}

std::string export_file_name(std::uint64_t exporter) {
  char name[sizeof(kPrefix) + 16];
  std::snprintf(name, sizeof(name), "%s%016llx", kPrefix, static_cast<unsigned long long>(exporter));
  return name;
}

bool is_export_file(const std::string &name) {
  return name.size() == sizeof(kPrefix) - 1 + 16 && name.compare(0, sizeof(kPrefix) - 1, kPrefix) == 0 &&
         name.find_first_not_of("0123456789abcdef", sizeof(kPrefix) - 1) == std::string::npos;
}

ExportFile::~ExportFile() {
  if (header_ != nullptr) {
    munmap(header_, shared::kExportBytes);
  }
}

ExportRecord &ExportFile::record(std::uint32_t index) const {
  return reinterpret_cast<ExportRecord *>(reinterpret_cast<char *>(header_) + sizeof(ExportHeader))[index];
}

// Takes the life byte before the file can be found by name. False with an empty `problem`: the name was taken.
bool ExportFile::set_up(int folder, int descriptor, const std::string &temporary, std::string &problem) {
  if (lock_life(descriptor, shared::kExporterLife) != LifeLock::taken) {
    problem = "its file system has no open-file-description locks";
    return false;
  }
  exporter_ = random_number();
  name_ = export_file_name(exporter_);
  if (const int error = allocate_space(descriptor, 0, shared::kExportBytes); error != 0) {
    problem = error_text(error);
    return false;
  }
  if (!write_header(descriptor, exporter_) || !identify(descriptor, identity_)) {
    problem = error_text(errno);
    return false;
  }
  header_ = static_cast<ExportHeader *>(map_shared(descriptor, shared::kExportBytes));
  if (header_ == nullptr) {
    problem = error_text(errno);
    return false;
  }
  const int error = claim_name(folder, temporary.c_str(), name_.c_str());
  if (error != 0 && error != EEXIST && error != ENOENT) {
    problem = error_text(error);
  }
  return error == 0;
}

std::unique_ptr<ExportFile> ExportFile::make(const std::string &state_folder, std::string &problem) {
  if (state_folder.empty()) {
    problem = "there is no state folder";
    return nullptr;
  }
  const JoinGate gate;
  problem.clear();
  for (int tries = 0; tries < kTries && problem.empty(); ++tries) {
    std::unique_ptr<ExportFile> made(new ExportFile());
    made->folder_ = state_folder;
    const ForkExclusion exclusion;
    const Descriptor folder = open_state_folder(state_folder, true, problem);
    if (!folder) {
      continue;
    }
    const std::string temporary = temporary_name();
    JoinDescriptor file;
    file.take(Descriptor(
        open_beyond_streams(folder.number(), temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600)));
    if (!file) {
      problem = errno == ENOENT ? "" : error_text(errno);  // ENOENT: the folder was removed
      continue;
    }
    fchmod(file.number(), 0600);  // whatever the umask is
    const bool done = made->set_up(folder.number(), file.number(), temporary, problem);
    // the temporary name exists only after a failure, or if claim_name() made a link
    unlinkat(folder.number(), temporary.c_str(), 0);
    if (!done) {
      continue;
    }
    file.close();
    const Descriptor probe = open_group_file(folder.number(), made->name_, problem);
    if (!probe || !is_dead(probe.number(), shared::kExporterLife)) {
      return made;
    }
    unlinkat(folder.number(), made->name_.c_str(), 0);
    problem = kLosesLocks;
  }
  problem = state_folder + ": " + (problem.empty() ? "other processes keep removing it" : problem);
  return nullptr;
}

bool ExportFile::has_pages() const {
  return ledger::has_pages(header_, shared::kExportBytes);
}

ExportToken ExportFile::publish(std::uint32_t index, const ExportedBlock &block, const ExportNonce &nonce) {
  ExportRecord &held = record(index);
  const std::uint64_t generation = (held.state.load(std::memory_order_relaxed) >> 1) + 1;
  for (std::size_t i = 0; i < nonce.size(); ++i) {
    held.nonce[i].store(nonce[i], std::memory_order_relaxed);
  }
  held.offset.store(block.offset, std::memory_order_relaxed);
  held.bytes.store(block.bytes, std::memory_order_relaxed);
  held.slab_bytes.store(block.slab_bytes, std::memory_order_relaxed);
  held.kind.store(static_cast<std::uint64_t>(block.kind), std::memory_order_relaxed);
  std::uint64_t words[8];
  static_assert(sizeof(words) == sizeof(block.handle));
  std::memcpy(words, block.handle, sizeof(words));
  for (std::size_t i = 0; i < 8; ++i) {
    held.handle[i].store(words[i], std::memory_order_relaxed);
  }
  held.state.store(generation << 1 | 1);
  ExportToken token;
  token.magic = ExportToken::kMagic;
  token.version = shared::kExportVersion;
  token.record = index;
  token.exporter = exporter();
  token.generation = generation;
  token.nonce[0] = nonce[0];
  token.nonce[1] = nonce[1];
  return token;
}

void ExportFile::end(std::uint32_t index) {
  if (has_pages()) {
    record(index).state.fetch_and(~std::uint64_t{1});
  }
}

// REQUIRES: nobody holds the lock on the record's byte. So an opener that still lives has called execve, or is just
// closing the block.
bool ExportFile::has_ending_opener(std::uint32_t index) const {
  if (!has_pages()) {
    return true;
  }
  for (shared::ExportWord &opener : record(index).opener) {
    ProcessMark mark = opener.load();
    const ProcessState state = mark == 0 ? ProcessState::lives : state_of(mark);
    if (state == ProcessState::ending) {
      return true;
    }
    if (state == ProcessState::gone) {
      (void)opener.compare_exchange_strong(mark, 0);
    }
  }
  return false;
}

ExportFile::Snapshot::Snapshot(const ExportFile &file) : records_(file) {
  std::string problem;
  const Descriptor folder = open_state_folder(file.folder_, false, problem);
  if (!folder) {
    return;
  }
  Descriptor opened = open_group_file(folder.number(), file.name_, problem);
  FileIdentity found;
  if (opened && identify(opened.number(), found) && found == file.identity_) {
    file_ = std::move(opened);
  }
}

bool ExportFile::Snapshot::is_open(std::uint32_t index) const {
  return !file_ || !is_dead(file_.number(), shared::life_of_record(index)) || records_.has_ending_opener(index);
}

bool ExportFile::Snapshot::none_open() const {
  return file_ && is_dead(file_.number(), shared::life_of_record(0), shared::kExportRecords);
}

void ExportFile::remove_if_unused() const {
  if (!Snapshot(*this).none_open()) {
    return;
  }
  std::string problem;
  const Descriptor folder = open_state_folder(folder_, false, problem);
  if (folder) {
    unlinkat(folder.number(), name_.c_str(), 0);
  }
}

}  // namespace ration::ledger
