// The books of what the driver itself allocated for the program: how a block enters them and the log, and leaves both.
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
  // Ends a block for real; nullptr: the address is in no book, the driver answers for it.
  using End = FunctionRef<CUresult(const Block *block)>;

  explicit Books(const CallParts &parts) : parts_(parts) {}

  // Enters a block and logs it. Anything but success: it could not be entered, and the caller gives it back.
  CUresult enter(AddressBook &book, const Request &request, const Block &block, CUdeviceptr key,
                 std::uint64_t duration_ns);
  // Runs `end` on the block at `address`; on success the block leaves `book`. INVALID_VALUE where another thread is
  // ending it: forwarded now, this call could free the address's next owner.
  CUresult end(AddressBook &book, const char *api, std::uint64_t address, End end);
  // For a block whose end was begun in its book: logs the end and releases what was charged for it.
  void end_block(const char *api, const AddressedBlock &block);
  void record_end(const char *api, CUdeviceptr address, const Block &block, CUstream stream);
  // Releases what was charged for this block alone.
  void discharge(const Block &block);
  // After its record, where the block is one that figures of its device count.
  void publish(const Block &block) noexcept;
  // The driver refused to end a block that was begun.
  void keep(AddressBook &book, const AddressedBlock &block);

  // How the program's call came to us, for the log; the hooks know the callers.
  void set_via(ViaOf via_of) { via_of_ = via_of; }
  events::Via via_of(const Request &request) const;

  AddressBook blocks;                                         // by address
  AddressBook arrays;                                         // by handle
  const ContextRef no_context = std::make_shared<Context>();  // of blocks that no context takes along

 private:
  const CallParts &parts_;
  EndingRanges ending_;
  ViaOf via_of_ = nullptr;
};

}  // namespace ration::policy
