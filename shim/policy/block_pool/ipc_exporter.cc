#include "policy/block_pool/ipc_exporter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "policy/block_pool/context_pool.h"

namespace ration::policy {
namespace {

// While this exists, a block of the pool may be shared, so every free of the pool's blocks asks the exporter.
class Announced {
 public:
  explicit Announced(std::atomic<int> &shared) : shared_(shared) { shared_.fetch_add(1); }
  ~Announced() {
    if (!stays_) {
      shared_.fetch_sub(1);
    }
  }
  Announced(const Announced &) = delete;
  Announced &operator=(const Announced &) = delete;
  void stay() { stays_ = true; }

 private:
  std::atomic<int> &shared_;
  bool stays_ = false;
};

}  // namespace

ledger::ExportFile *IpcExporter::file(std::string &problem) {
  ledger::ExportFile *known = file_.load(std::memory_order_acquire);
  if (known != nullptr) {
    return known;
  }
  std::unique_ptr<ledger::ExportFile> made = ledger::ExportFile::make(state_folder_, problem);
  if (made == nullptr) {
    return nullptr;
  }
  if (!file_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
    made->remove_if_unused();  // another thread was faster
    return known;
  }
  return made.release();
}

bool IpcExporter::free_record(std::uint32_t &record) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [](const Entry &entry) { return entry.state == State::free; });
  record = static_cast<std::uint32_t>(found - entries_.begin());
  if (found == entries_.end()) {
    if (entries_.size() == ledger::shared::kExportRecords) {
      return false;
    }
    entries_.emplace_back();
  }
  return true;
}

// The announcement comes before the search of the pool: a free that takes the pool's lock after the search sees it.
IpcExporter::Shared IpcExporter::share(const ContextRef &owner, const pool::Block &block,
                                       const ledger::ExportedBlock &in, ledger::ExportToken &token,
                                       std::string &problem) {
  ledger::ExportFile *const records = file(problem);
  if (records == nullptr) {
    return Shared::no_file;
  }
  if (!records->has_pages()) {
    problem = records->path() + ": it was cut short";
    return Shared::no_file;
  }
  if (in.kind == ledger::ExportKind::granules && !server_.start(state_folder_, records->exporter(), problem)) {
    return Shared::no_file;
  }
  const ledger::ExportNonce nonce = ledger::export_nonce();
  ContextPool &pool = *existing_pool(*owner);
  Announced announced(pool.shared);
  Guard guard(mutex_);
  const std::optional<pool::Block> live = pool.blocks.find(block.address);
  if (!live || live->address != block.address || live->slab != block.slab || live->requested != block.requested) {
    return Shared::not_a_block;
  }
  if (const auto before = by_address_.find(block.address); before != by_address_.end()) {
    token = entries_[before->second].token;
    return Shared::shared;
  }
  ledger::ExportedBlock lies = in;
  pool::stitch::Stitcher::Parts granules;
  if (in.kind == ledger::ExportKind::granules) {
    granules = pool.blocks.parts_of(*live);
    if (granules.parts.empty()) {
      return Shared::not_a_block;  // freed meanwhile
    }
    lies.offset = granules.offset;
    for (const Part &part : granules.parts) {
      lies.slab_bytes += part.bytes;
    }
  }
  std::uint32_t record = 0;
  if (!free_record(record)) {
    return Shared::no_place;
  }
  by_address_.emplace(block.address, record);
  token = records->publish(record, lies, nonce);
  entries_[record] = {State::live, {owner, block.address, block.bytes}, token, lies, std::move(granules.parts)};
  announced.stay();
  return Shared::shared;
}

bool IpcExporter::is_own(const ledger::ExportToken &token) const {
  const ledger::ExportFile *const own = file_.load(std::memory_order_acquire);
  return own != nullptr && own->exporter() == token.exporter;
}

bool IpcExporter::is_of(const Entry &entry, const ledger::ExportToken &token) {
  const ledger::ExportToken &wanted = entry.token;
  return wanted.exporter == token.exporter && wanted.generation == token.generation &&
         wanted.nonce[0] == token.nonce[0] && wanted.nonce[1] == token.nonce[1];
}

bool IpcExporter::find_own(const ledger::ExportToken &token, ledger::ExportedBlock &block) {
  Guard guard(mutex_);
  if (token.record >= entries_.size()) {
    return false;
  }
  const Entry &entry = entries_[token.record];
  if (entry.state != State::live || !is_of(entry, token)) {
    return false;
  }
  block = entry.in;
  return true;
}

// A kept block is open in another process, which may still ask for its parts.
IpcExporter::Exporting::Exporting(IpcExporter &exports, const ledger::ExportToken &token, std::uint64_t first)
    : exports_(exports), record_(token.record) {
  parts_.reserve(ledger::kPartsAtOnce);
  Guard guard(exports_.mutex_);
  if (record_ >= exports_.entries_.size()) {
    return;
  }
  Entry &entry = exports_.entries_[record_];
  if ((entry.state != State::live && entry.state != State::kept) || entry.block.owner == nullptr ||
      !exports_.is_of(entry, token) || first >= entry.parts.size()) {
    return;
  }
  total_ = entry.parts.size();
  const std::uint64_t end = std::min<std::uint64_t>(total_, first + ledger::kPartsAtOnce);
  parts_.assign(entry.parts.begin() + static_cast<std::ptrdiff_t>(first),
                entry.parts.begin() + static_cast<std::ptrdiff_t>(end));
  ++entry.exporting;
  owner_ = entry.block.owner;
}

IpcExporter::Exporting::~Exporting() {
  if (owner_ != nullptr) {
    Guard guard(exports_.mutex_);
    --exports_.entries_[record_].exporting;
  }
}

bool IpcExporter::keep(ContextPool &pool, pool::Address address, std::uint64_t bytes) noexcept {
  if (pool.shared.load() == 0) {
    return false;
  }
  Guard guard(mutex_);
  const auto found = by_address_.find(address);
  if (found == by_address_.end() || existing_pool(*entries_[found->second].block.owner) != &pool) {
    return false;
  }
  Entry &entry = entries_[found->second];
  file_.load(std::memory_order_acquire)->end(found->second);
  entry.state = State::kept;
  entry.block.bytes = bytes;
  by_address_.erase(found);
  kept_.fetch_add(1, std::memory_order_relaxed);
  pool.shared.fetch_sub(1);
  return true;
}

std::uint64_t IpcExporter::kept_bytes(int device) {
  std::uint64_t bytes = 0;
  if (keeps_any()) {
    Guard guard(mutex_);
    for (const Entry &entry : entries_) {
      if (entry.state == State::kept && entry.block.owner != nullptr && entry.block.owner->device == device) {
        bytes += entry.block.bytes;
      }
    }
  }
  return bytes;
}

std::vector<IpcExporter::Candidate> IpcExporter::candidates(std::size_t most) {
  std::vector<Candidate> found;
  found.reserve(std::min(most, kept_.load(std::memory_order_relaxed)));
  Guard guard(mutex_);
  for (std::size_t i = 0; i < entries_.size() && found.size() < found.capacity(); ++i) {
    const std::size_t record = (next_kept_ + i) % entries_.size();
    if (entries_[record].state == State::kept) {
      found.push_back({static_cast<std::uint32_t>(record), entries_[record].token.generation});
    }
  }
  next_kept_ = found.empty() ? 0 : found.back().record + 1;
  return found;
}

// The generation identifies the candidate: another thread may have returned its block and shared the next one there.
bool IpcExporter::begin_return(const Candidate &candidate, Kept &block) {
  Guard guard(mutex_);
  Entry &entry = entries_[candidate.record];
  if (entry.state != State::kept || entry.token.generation != candidate.generation || entry.exporting != 0) {
    return false;
  }
  entry.state = State::returning;
  block = entry.block;
  return true;
}

void IpcExporter::finish_return(std::uint32_t record, bool taken) {
  Kept dropped;  // destroyed after the lock is released, as its context and pool may end with it
  std::vector<Part> parts;
  Guard guard(mutex_);
  Entry &entry = entries_[record];
  entry.state = taken ? State::free : State::kept;
  if (taken) {
    std::swap(dropped, entry.block);
    std::swap(parts, entry.parts);
    kept_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void IpcExporter::reconcile(std::size_t most, FunctionRef<bool(const Kept &)> take_back) noexcept try {
  if (!keeps_any()) {
    return;
  }
  const std::vector<Candidate> kept = candidates(most);
  const ledger::ExportFile::Snapshot snapshot(*file_.load(std::memory_order_acquire));
  for (const Candidate &candidate : kept) {
    Kept block;
    if (!snapshot.is_open(candidate.record) && begin_return(candidate, block)) {
      finish_return(candidate.record, block.owner == nullptr || take_back(block));
    }
  }
} catch (...) {  // no memory of the host: they stay here
}

// REQUIRES: no call that could still give one of its blocks back is under way (ContextPool::InFlight).
void IpcExporter::forget(ContextPool &pool) noexcept {
  Guard guard(mutex_);
  for (std::size_t record = 0; record < entries_.size(); ++record) {
    Entry &entry = entries_[record];
    if (entry.state == State::free || entry.block.owner == nullptr || existing_pool(*entry.block.owner) != &pool) {
      continue;
    }
    if (entry.state == State::live) {
      file_.load(std::memory_order_acquire)->end(static_cast<std::uint32_t>(record));
      by_address_.erase(entry.block.address);
      entry.state = State::kept;
      kept_.fetch_add(1, std::memory_order_relaxed);
      pool.shared.fetch_sub(1);
    } else {
      (void)pool.blocks.reclaim(entry.block.address);
    }
    entry.block.owner.reset();  // the caller holds it too
  }
}

void IpcExporter::leave() noexcept try {
  server_.stop();
  if (const ledger::ExportFile *file = file_.load(std::memory_order_acquire)) {
    file->remove_if_unused();
  }
} catch (...) {  // the next `ration ps` removes it
}

}  // namespace ration::policy
