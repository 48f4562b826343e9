#include "policy/calls/address_book.h"

#include "base/this_thread.h"
#include "base/wait.h"

namespace ration::policy {
AddressBook::Inserted AddressBook::insert(std::uint64_t address, const Block &block, std::optional<Block> &displaced) {
  Shard &shard = shard_of(address);
  for (Waiter waiter;;) {
    {
      Guard guard(shard.mutex);
      Entry &entry = shard.entries[address];
      if (entry.ender == nullptr) {
        if (entry.block.context != nullptr) {
          displaced = entry.block;
        }
        // If the context ends now, either the sweep over its blocks still finds this entry, or we see here
        // that the context is gone.
        if (block.context->ended_by.load(std::memory_order_acquire) != nullptr) {
          shard.entries.erase(address);
          return Inserted::context_gone;
        }
        entry.block = block;
        entry.ender = this_thread();
        entry.with_context = false;
        return Inserted::entered;
      }
    }
    waiter.pause();  // the other thread is in its driver call or past it, and holds no lock of ours
  }
}

AddressBook::Found AddressBook::begin_end(std::uint64_t address, Block &block) {
  Shard &shard = shard_of(address);
  for (Waiter waiter;;) {
    {
      Guard guard(shard.mutex);
      const auto found = shard.entries.find(address);
      if (found == shard.entries.end() || found->second.ender == this_thread()) {
        return Found::unknown;
      }
      Entry &entry = found->second;
      if (entry.ender == nullptr) {
        entry.ender = this_thread();
        entry.with_context = false;
        block = entry.block;
        return Found::begun;
      }
      if (!entry.with_context) {
        return Found::ending_elsewhere;
      }
    }
    waiter.pause();
  }
}

std::optional<Block> AddressBook::find(std::uint64_t address) {
  Shard &shard = shard_of(address);
  Guard guard(shard.mutex);
  const auto found = shard.entries.find(address);
  return found == shard.entries.end() ? std::nullopt : std::optional(found->second.block);
}

void AddressBook::finish_end(std::uint64_t address) {
  Shard &shard = shard_of(address);
  Guard guard(shard.mutex);
  shard.entries.erase(address);
  wake_waiters();
}

bool AddressBook::cancel_end(std::uint64_t address) {
  Shard &shard = shard_of(address);
  Guard guard(shard.mutex);
  const auto found = shard.entries.find(address);
  // If the context ends now, either the sweep over its blocks still finds this entry, or we see here
  // that the context is gone.
  if (found == shard.entries.end()) {
    return true;
  }
  if (found->second.block.context->ended_by.load(std::memory_order_acquire) != nullptr) {
    return false;
  }
  found->second.ender = nullptr;
  wake_waiters();
  return true;
}

void AddressBook::begin_end_of(const ContextRef &context) noexcept {
  for (Shard &shard : shards_) {
    Guard guard(shard.mutex);
    for (auto &[address, entry] : shard.entries) {
      if (entry.block.context == context && entry.ender == nullptr) {
        entry.ender = this_thread();
        entry.with_context = true;
      }
    }
  }
}

void AddressBook::cancel_end_of(const ContextRef &context) noexcept {
  for (Shard &shard : shards_) {
    Guard guard(shard.mutex);
    for (auto &[address, entry] : shard.entries) {
      if (entry.block.context == context && entry.with_context && entry.ender == this_thread()) {
        entry.ender = nullptr;
        wake_waiters();
      }
    }
  }
}

std::size_t AddressBook::begun_of(const ContextRef &context, Batch &batch) noexcept {
  std::size_t count = 0;
  for (Shard &shard : shards_) {
    Guard guard(shard.mutex);
    for (auto &[address, entry] : shard.entries) {
      if (count == batch.size()) {
        return count;
      }
      if (entry.block.context == context && entry.with_context && entry.ender == this_thread()) {
        batch[count++] = {address, entry.block};
      }
    }
  }
  return count;
}

}  // namespace ration::policy
