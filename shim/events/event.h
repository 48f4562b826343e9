// The events that are recorded, a struct for each; keys and names are as in the log (README.md). Layer: events (a
// leaf). Sizes are in bytes, times in nanoseconds. The caller owns the strings, which must outlive the call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/saturating.h"

namespace ration::events {

// Why an allocation was denied.
enum class Reason { limit, group, device, pool_holds, fault };
inline constexpr int kReasonCount = 5;
inline constexpr const char *kReasonNames[kReasonCount] = {"limit", "group", "device", "pool_holds", "fault"};
constexpr const char *name_of(Reason reason) {
  return kReasonNames[static_cast<int>(reason)];
}

// The origin of a block. A block from the driver changes the reserved bytes. A block from the pool is part of a slab,
// and the record of that slab has already changed these bytes.
enum class Source { driver, pool };
constexpr std::string_view name_of(Source source) {
  return source == Source::pool ? "pool" : "driver";
}

// The kind of memory. Host memory, and managed memory that is only counted, do not change any device's totals.
enum class Kind { device, managed, host, array, vmm, pool };
inline constexpr std::string_view kKindNames[] = {"device", "managed", "host", "array", "vmm", "pool"};
constexpr std::string_view name_of(Kind kind) {
  return kKindNames[static_cast<int>(kind)];
}

// Why the driver itself takes memory. `other` is for launches and streams, as far as this is known.
enum class OverheadKind { context, module, limit, other };
inline constexpr int kOverheadKinds = 4;
inline constexpr const char *kOverheadNames[kOverheadKinds] = {"context", "module", "limit", "other"};

// The route by which the call reached the hook; best effort.
enum class Via { driver, runtime };

struct Alloc {
  std::uint64_t address;
  std::uint64_t size;       // from the pool: rounded up to a unit; otherwise the bytes charged for it
  std::uint64_t requested;  // the bytes that the program asked for
  int device;
  unsigned context;  // contexts are numbered from 1 in order of appearance; 0: unknown
  const char *api;
  Kind kind;
  Source source;
  Via via;
  std::uint64_t duration_ns;
  std::uint64_t slab = 0;    // number of the slab that contains it; 0: none
  bool charged = true;       // counts against the limit
  bool stitched = false;     // made from free granules, at its own addresses
  std::uint64_t stream = 0;  // as in Free
};

struct Free {
  std::uint64_t address;
  std::uint64_t size;
  int device;
  unsigned context;
  const char *api;           // the call that ended the block: a free, or the destruction of its context
  std::uint64_t stream = 0;  // the stream handle of a stream-ordered call; 1 and 2: the default streams; 0: none
  Source source = Source::driver;
  Kind kind = Kind::device;
  bool charged = true;
};

// The group whose limit refused the request.
struct GroupState {
  std::string name;  // "tree:" and its number for a tree, "container:" and its name; empty: no group refused
  std::uint64_t limit = 0;
  std::uint64_t reserved = 0;
  std::uint64_t claimed = 0;  // reserved bytes, plus guaranteed bytes that are not reserved
};

// Stands in place of a program's name for all memory held by processes that do not run under Ration.
inline constexpr const char *kOutside = "outside Ration";

// A process that holds memory which a refused request lacked.
struct Holder {
  int pid;  // in its own PID namespace
  std::string program;
  std::uint64_t reserved;
  std::uint64_t used;
  std::uint64_t guarantee = 0;  // of a run: the part that none of its processes holds
};

// What a process holds, and what is kept free for it, so that the figures of all holders add up. `holds` and `keeps`
// are the verbs: "holds 256MiB and keeps 1.75GiB free under its guarantee".
inline std::string held_words(std::uint64_t reserved, std::uint64_t guarantee, const char *holds, const char *keeps,
                              FunctionRef<std::string(std::uint64_t)> shown) {
  const std::uint64_t kept = minus_or_zero(guarantee, reserved);
  std::string words = reserved != 0 || kept == 0 ? std::string(holds) + " " + shown(reserved) : "";
  words += kept != 0
               ? (words.empty() ? "" : " and ") + std::string(keeps) + " " + shown(kept) + " free under its guarantee"
               : "";
  return words;
}

// The part that is known in any case of what a request lacked that a limit refused. 0: none.
inline std::uint64_t least_lacking(std::uint64_t used, std::uint64_t requested, std::uint64_t limit) {
  return minus_or_zero(used + requested, limit);
}

// "52MiB short", "at least 52MiB short"; empty if neither is known.
inline std::string lack_words(std::uint64_t lacking, std::uint64_t least, std::uint64_t requested,
                              FunctionRef<std::string(std::uint64_t)> shown) {
  return lacking != 0 ? shown(lacking) + " short" + (lacking > requested ? ", in whole pages" : "")
         : least != 0 ? "at least " + shown(least) + " short"
                      : "";
}

struct Oom {
  int device;
  const char *api;
  std::uint64_t requested;
  Reason reason;
  std::uint64_t used;                        // bytes that the program held on the device when denied
  std::uint64_t limit;                       // effective limit; the device's total if no limit was asked for
  std::optional<std::uint64_t> device_free;  // as the driver reports it; nullopt: the device has no context
  std::uint64_t largest_free;
  std::uint64_t reserved = 0;     // charged on the device: whole slabs, and blocks from the driver
  std::uint64_t quarantined = 0;  // freed, but possibly still in use by the device
  bool capturing = false;         // a capture was running, so quarantined blocks could not be cleaned
  GroupState group{};
  std::vector<Holder> holders{};   // the processes that hold most in the refusing group or on the full device
  std::uint64_t more_holders = 0;  // those not among `holders`
  bool sharing = false;            // a handle for sharing, not memory, was refused; counted separately
  std::uint64_t needed = 0;        // bytes that must be free; exceeds `requested` if a driver pool grows in steps

  // Set if the pool takes whole pages and can serve the request from any free ones. 0: not so, or not known.
  std::uint64_t page_bytes = 0;
  std::uint64_t free_in_pages = 0;  // what the pools hold in such pages
  std::uint64_t untaken = 0;        // what the limits leave

  // With how many more bytes of the limit that refused the request it would have been served at that moment. 0:
  // unknown, because the process held free memory that could not serve it, or because the device may have had too
  // little.
  std::uint64_t lacking() const {
    const bool is_by_limit =
        reason == Reason::limit || reason == Reason::group || (reason == Reason::pool_holds && page_bytes != 0);
    if (!is_by_limit || sharing || quarantined != 0) {
      return 0;
    }
    const std::uint64_t asked = std::max(requested, needed);
    const std::uint64_t over =  // more may be held than a limit that was set later
        reason == Reason::group ? minus_or_zero(group.claimed, group.limit) : minus_or_zero(reserved, limit);
    if (page_bytes == 0) {
      return reserved == used && device_free.value_or(0) >= asked ? over + minus_or_zero(asked, largest_free) : 0;
    }
    const std::uint64_t to_take = minus_or_zero((asked + page_bytes - 1) / page_bytes * page_bytes, free_in_pages);
    return device_free.value_or(0) >= to_take && to_take > untaken ? over + to_take - untaken : 0;
  }
  // The part of lacking() that is known in any case. 0: none.
  std::uint64_t lacking_at_least() const {
    return reason == Reason::limit && !sharing ? least_lacking(used, requested, limit) : 0;
  }
};

// The pool obtained a slab from the driver.
struct SlabAlloc {
  std::uint64_t address;
  std::uint64_t size;
  int device;
  unsigned context;     // as in Alloc
  std::uint64_t slab;   // from 1, never reused
  const char *backend;  // the driver's function, for instance cuMemAlloc_v2
  const char *why;      // preallocate, grow, stitch, check or merge
  std::uint64_t duration_ns;
  std::uint64_t range = 0;  // bytes of an address range without memory; 0: the slab has memory
  bool granule = false;     // the slab is a handle of physical memory, and `address` is the handle
};

// The pool released a slab, or lost it with its context.
struct SlabFree {
  std::uint64_t address;
  std::uint64_t size;
  int device;
  unsigned context;
  std::uint64_t slab;
  const char *api;  // the program's call that needed the memory, or destroyed the context
  bool granule = false;
};

// A call of the program waited, for the device or for other processes.
struct Wait {
  int device;
  const char *api;
  const char *how;       // event, synchronize, poll or members
  std::uint64_t blocks;  // number of freed blocks that became reusable through the wait
  std::uint64_t bytes;
  std::uint64_t duration_ns;
  int result;  // the driver's result; 0: success
};

// The pool released wholly free slabs because another request needed the memory; each slab has its own SlabFree.
struct Trim {
  int device;
  const char *api;
  std::uint64_t slabs;
  std::uint64_t bytes;
  std::uint64_t granules = 0;
};

// The memory that the driver's own pools hold on a device has changed.
struct Sample {
  int device;
  const char *api;              // the program's call that revealed it
  std::uint64_t before;         // bytes charged for these pools in the previous record of this kind
  std::uint64_t pool_reserved;  // bytes charged for these pools now
};

struct DeviceFacts {
  int ordinal;
  std::string uuid;
  std::string name;
  std::uint64_t total;
  std::uint64_t limit;  // the effective limit; equals the total if no limit was asked for
  bool limit_asked;
  std::uint64_t group_limit = 0;  // the smallest limit of its groups; 0: none
  std::string mode{};             // the device's mode, if it differs from the process's
  std::string backing{};          // what the device's pools are made of; empty: it has none
  std::string backing_reason{};
};

// The first line: program, host and settings.
struct Meta {
  std::string mode;
  int driver_version;  // as cuDriverGetVersion returns it; 0: unknown
  std::vector<DeviceFacts> devices;
  struct Setting {
    std::string key, value, source;
    std::string place{};  // position in a file, or name of a third-party variable; empty: a variable of Ration's
    bool locked = false;  // fixed by a system file
  };
  std::vector<Setting> settings;  // settings not at their default; for each key, the effective one is first
  struct ThirdPartyVariable {
    std::string variable, value, disposition, reason;
  };
  std::vector<ThirdPartyVariable> foreign;                       // third-party variables that are set
  std::vector<std::pair<std::string, std::string>> environment;  // Ration's own variables as they were set
};

// The process that wrote the log.
struct Process {
  std::int64_t pid, parent;
  std::string host, executable, tree;
  std::vector<std::string> arguments;
  std::int64_t start_unix_ns;
};

}  // namespace ration::events
