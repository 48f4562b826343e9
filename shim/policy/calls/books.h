// Keeps the records of memory that the driver itself allocated for the program: enters blocks in the address book and
// the log, and takes them out again.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
//
// The order at a block's end: log it, release its bytes, and only then free its address for the next owner, so that a
// reuse is always logged later.
#pragma once

#include "base/function_ref.h"
#include "policy/calls/address_book.h"
#include "policy/calls/ending_ranges.h"
#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

class Books {
 public:
  using ViaOf = events::Via (*)(const void *caller);
  // Ends a block in the driver. `block` is nullptr if the address is in no book; then the driver alone answers.
  using End = FunctionRef<CUresult(const Block *block)>;

  explicit Books(const CallParts &parts) : parts_(parts) {}

  // Enters a block and logs it. If it cannot be entered, returns an error, and the caller must free it.
  CUresult enter(AddressBook &book, const Request &request, const Block &block, CUdeviceptr key,
                 std::uint64_t duration_ns);
  // Runs `end` on the block at `address`; on success the block leaves `book`. Returns INVALID_VALUE if another thread
  // is ending the block, because a free that is forwarded now could end the next block at the address.
  CUresult end(AddressBook &book, const char *api, std::uint64_t address, End end);
  // For a block whose end was begun in its book: logs the end and releases the bytes charged for the block.
  void end_block(const char *api, const AddressedBlock &block);
  void record_end(const char *api, CUdeviceptr address, const Block &block, CUstream stream);
  // Releases the bytes charged for this block alone.
  void discharge(const Block &block);
  // Called after a block is recorded. Publishes the figures of the block's device if they count the block.
  void publish(const Block &block) noexcept;
  // Called when the driver refused to end a block whose end was begun.
  void keep(AddressBook &book, const AddressedBlock &block);

  // Sets the function that finds, for the log, the way by which the program's call came; the hooks know the callers.
  void set_via(ViaOf via_of) { via_of_ = via_of; }
  events::Via via_of(const Request &request) const;

  AddressBook blocks;                                         // by address
  AddressBook arrays;                                         // by handle
  const ContextRef no_context = std::make_shared<Context>();  // for blocks that do not end with a context

 private:
  const CallParts &parts_;
  EndingRanges ending_;
  ViaOf via_of_ = nullptr;
};

}  // namespace ration::policy
