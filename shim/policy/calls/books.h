// The records of memory that the driver itself allocated for the program: how a block enters the address book and the
// log, and how it leaves both.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
//
// Order at an end: log, then release the bytes, then free the address for its next owner, so that reuse is always
// logged later.
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
  // Ends a block in the driver. nullptr: the address is in no book, and the driver answers for it.
  using End = FunctionRef<CUresult(const Block *block)>;

  explicit Books(const CallParts &parts) : parts_(parts) {}

  // Enters a block and logs it. If it cannot be entered, returns an error, and the caller must free it.
  CUresult enter(AddressBook &book, const Request &request, const Block &block, CUdeviceptr key,
                 std::uint64_t duration_ns);
  // Runs `end` on the block at `address`; on success the block leaves `book`. INVALID_VALUE if another thread is ending
  // it: a call that is forwarded now could free the address's next owner.
  CUresult end(AddressBook &book, const char *api, std::uint64_t address, End end);
  // For a block whose end was begun in its book: logs the end and releases the bytes charged for it.
  void end_block(const char *api, const AddressedBlock &block);
  void record_end(const char *api, CUdeviceptr address, const Block &block, CUstream stream);
  // Releases the bytes charged for this block alone.
  void discharge(const Block &block);
  // Called after a block's record: publishes the figures of its device, if they count the block.
  void publish(const Block &block) noexcept;
  // Called when the driver refused to end a block whose end was begun.
  void keep(AddressBook &book, const AddressedBlock &block);

  // How the program's call came to us, for the log; the hooks know the callers.
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
