#include "policy/calls/books.h"

#include <optional>

#include "policy/calls/call_parts.h"

namespace ration::policy {

events::Via Books::via_of(const Request &request) const {
  return parts_.journal.logging() && via_of_ != nullptr ? via_of_(request.caller) : events::Via::driver;
}

CUresult Books::enter(AddressBook &book, const Request &request, const Block &block, CUdeviceptr key,
                      std::uint64_t duration_ns) {
  std::optional<Block> displaced;
  AddressBook::Inserted inserted{};
  try {
    if (&book == &blocks) {
      parts_.pools.slabs.wait_for_ends(key, block.size);
      if (parts_.journal.logging()) {
        ending_.wait_for(key, block.size);
      }
    }
    inserted = book.insert(key, block, displaced);
  } catch (...) {
    parts_.journal.count_failed_alloc();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (displaced) {
    end_block(request.api, {key, *displaced});
  }
  if (inserted == AddressBook::Inserted::context_gone) {
    discharge(block);
    return CUDA_SUCCESS;
  }
  events::Alloc event{key,
                      block.size,
                      request.requested,
                      block.device,
                      block.context->number,
                      request.api,
                      block.kind,
                      block.pool != nullptr ? events::Source::pool : events::Source::driver,
                      via_of(request),
                      duration_ns};
  event.charged = block.charged;
  event.stream = reinterpret_cast<std::uintptr_t>(request.stream);
  parts_.journal.record(event);
  publish(block);
  if (!book.announce(key)) {
    end_block(block.context->ended_by.load(std::memory_order_acquire), {key, block});
    book.finish_end(key);
  }
  return CUDA_SUCCESS;
}

CUresult Books::end(AddressBook &book, const char *api, std::uint64_t address, End end) {
  if (address == 0) {
    parts_.journal.count_null_free();
    return end(nullptr);
  }
  Block block;
  const AddressBook::Found found = book.begin_end(address, block);
  if (found == AddressBook::Found::ending_elsewhere) {
    parts_.journal.count_failed_free();
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool known = found == AddressBook::Found::begun;
  const ledger::Change change(known ? &parts_.account(block.device).changes() : nullptr);
  std::optional<EndingRanges::Ending> ending;
  if (known && &book == &blocks && parts_.journal.logging()) {
    ending.emplace(ending_, address, block.size);
  }
  const CUresult result = end(known ? &block : nullptr);
  if (result != CUDA_SUCCESS) {
    known ? keep(book, {address, block}) : parts_.journal.count_failed_free();
    return result;
  }
  if (known) {
    end_block(api, {address, block});
    book.finish_end(address);
  }
  return result;
}

void Books::record_end(const char *api, CUdeviceptr address, const Block &block, CUstream stream) {
  events::Free event{
      address, block.size, block.device, block.context->number, api, reinterpret_cast<std::uintptr_t>(stream)};
  event.kind = block.kind;
  event.charged = block.charged;
  event.source = block.pool != nullptr ? events::Source::pool : events::Source::driver;
  parts_.journal.record(event);
}

void Books::discharge(const Block &block) {
  if (block.charged && block.pool == nullptr) {
    parts_.account(block.device).release(block.size);
  }
}

void Books::publish(const Block &block) noexcept {
  if (block.charged) {
    parts_.pools.publication.publish_exactly(block.device);
  }
}

void Books::end_block(const char *api, const AddressedBlock &block) {
  const auto &[address, held] = block;
  record_end(api, address, held, nullptr);
  publish(held);  // before the bytes are released
  discharge(held);
  if (held.pool != nullptr) {
    parts_.stream_pools.block_ended(*held.pool, held.size);
  }
}

void Books::keep(AddressBook &book, const AddressedBlock &block) {
  parts_.journal.count_failed_free();
  if (!book.cancel_end(block.first)) {
    end_block(block.second.context->ended_by.load(std::memory_order_acquire), block);
    book.finish_end(block.first);
  }
}

}  // namespace ration::policy
