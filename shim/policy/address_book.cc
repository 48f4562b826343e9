#include "policy/address_book.h"

#include <sched.h>

namespace ration::policy {

AddressBook::Inserted AddressBook::insert(std::uint64_t address, const Block &block, std::optional<Block> &displaced) {
  Shard &shard = shard_of(address);
  for (;;) {
    {
      Guard guard(shard.mutex);
      Entry &entry = shard.entries[address];
      if (!entry.ending) {
        if (entry.block.context != nullptr) {
          displaced = entry.block;
        }
        // Either the sweep of a context that goes still finds this entry, or we see here that it is gone.
        if (block.context->gone.load(std::memory_order_acquire)) {
          shard.entries.erase(address);
          return Inserted::context_gone;
        }
        entry.block = block;
        return Inserted::entered;
      }
    }
    sched_yield();  // the other thread has its driver call behind it or is in it; it holds no lock of ours
  }
}

AddressBook::Found AddressBook::begin_end(std::uint64_t address, Block &block) {
  Shard &shard = shard_of(address);
  Guard guard(shard.mutex);
  const auto found = shard.entries.find(address);
  if (found == shard.entries.end()) {
    return Found::unknown;
  }
  if (found->second.ending) {
    return Found::ending_elsewhere;
  }
  found->second.ending = true;
  block = found->second.block;
  return Found::begun;
}

std::vector<AddressedBlock> AddressBook::begin_end_of(const ContextRef &context) {
  std::vector<AddressedBlock> begun;
  for (Shard &shard : shards_) {
    Guard guard(shard.mutex);
    for (auto &[address, entry] : shard.entries) {
      if (entry.block.context == context && !entry.ending) {
        begun.emplace_back(address, entry.block);
        entry.ending = true;
      }
    }
  }
  return begun;
}

void AddressBook::finish_end(std::uint64_t address) {
  Shard &shard = shard_of(address);
  Guard guard(shard.mutex);
  shard.entries.erase(address);
}

void AddressBook::cancel_end(std::uint64_t address) {
  Shard &shard = shard_of(address);
  Guard guard(shard.mutex);
  const auto found = shard.entries.find(address);
  if (found != shard.entries.end()) {
    found->second.ending = false;
  }
}

}  // namespace ration::policy
