// The events of memory, one struct for each; keys and names as in the log (README.md).
// Layer: events (a leaf). Sizes are bytes, times nanoseconds. The caller owns the strings, which outlive the call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ration::events {

// Why an allocation was denied.
enum class Reason { limit, group, device, pool_holds, fault };
inline constexpr int kReasonCount = 5;
inline constexpr const char *kReasonNames[kReasonCount] = {"limit", "group", "device", "pool_holds", "fault"};
constexpr const char *name_of(Reason reason) {
  return kReasonNames[static_cast<int>(reason)];
}

// Origin of a block. A block of the driver's moves the reserved bytes; a block of the pool lies in a slab, whose own
// record has moved them.
enum class Source { driver, pool };
constexpr std::string_view name_of(Source source) {
  return source == Source::pool ? "pool" : "driver";
}

// Kind of memory. Host memory, and managed memory that is only counted, moves no device's totals.
enum class Kind { device, managed, host, array, vmm, pool };
inline constexpr std::string_view kKindNames[] = {"device", "managed", "host", "array", "vmm", "pool"};
constexpr std::string_view name_of(Kind kind) {
  return kKindNames[static_cast<int>(kind)];
}

// What the driver takes memory for on its own account; other: what launches and streams take, where it is known.
enum class OverheadKind { context, module, limit, other };
inline constexpr int kOverheadKinds = 4;
inline constexpr const char *kOverheadNames[kOverheadKinds] = {"context", "module", "limit", "other"};

// The route by which the call reached the hook; best effort.
enum class Via { driver, runtime };

struct Alloc {
  std::uint64_t address;
  std::uint64_t size;       // in the pool rounded up to a unit, else what is charged for it
  std::uint64_t requested;  // what the program asked for
  int device;
  unsigned context;  // number of the context in order of appearance, from 1; 0: unknown
  const char *api;
  Kind kind;
  Source source;
  Via via;
  std::uint64_t duration_ns;
  std::uint64_t slab = 0;    // number of the slab that contains it; 0: none
  bool charged = true;       // counts against the limit
  bool stitched = false;     // from free granules, at addresses of its own
  std::uint64_t stream = 0;  // as in Free
};

struct Free {
  std::uint64_t address;
  std::uint64_t size;
  int device;
  unsigned context;
  const char *api;           // the call that ended the block: a free, or one that destroyed its context
  std::uint64_t stream = 0;  // handle that a stream-ordered call means, 1 and 2 of default streams; 0: none
  Source source = Source::driver;
  Kind kind = Kind::device;
  bool charged = true;
};

// The group whose limit refused the request.
struct GroupState {
  std::string name;  // "tree:" and its number for a tree, "container:" and its name; empty: no group refused
  std::uint64_t limit = 0;
  std::uint64_t reserved = 0;
  std::uint64_t claimed = 0;  // reserved, and what is guaranteed beyond that
};

// What holds memory and is no process of Ration's, where a program is named.
inline constexpr const char *kOutside = "outside Ration";

// A process that holds memory which others lack.
struct Holder {
  int pid;  // in its own PID namespace
  std::string program;
  std::uint64_t reserved;
  std::uint64_t used;
  std::uint64_t guarantee = 0;
};

struct Oom {
  int device;
  const char *api;
  std::uint64_t requested;
  Reason reason;
  std::uint64_t used;                        // held on the device by the program at the denial
  std::uint64_t limit;                       // effective limit; the device's total where none was asked for
  std::optional<std::uint64_t> device_free;  // as the driver reports it; nullopt: there is no context of the device
  std::uint64_t largest_free;
  std::uint64_t reserved = 0;     // charged on the device: whole slabs, and blocks of the driver's
  std::uint64_t quarantined = 0;  // freed, but not known to be out of use
  bool capturing = false;         // a capture was running, so quarantined blocks could not be cleaned
  GroupState group{};
  std::vector<Holder> holders{};  // those that hold most of the group that refused, or of the device that is full
  bool sharing = false;           // a handle for sharing was refused, not memory: counted separately
  std::uint64_t needed =
      0;  // what must be free for it: more than `requested` where a driver's pool grows by whole steps
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
  std::uint64_t range = 0;  // bytes of the addresses from `address` on, which hold no memory of their own; 0: a slab
  bool granule = false;     // a handle of physical memory, which is in `address`
};

// The pool released a slab, or lost it with its context.
struct SlabFree {
  std::uint64_t address;
  std::uint64_t size;
  int device;
  unsigned context;
  std::uint64_t slab;
  const char *api;  // the program's call that needed the room or destroyed the context
  bool granule = false;
};

// A call of the program waited for the device.
struct Wait {
  int device;
  const char *api;
  const char *how;       // event or synchronize
  std::uint64_t blocks;  // clean after the wait
  std::uint64_t bytes;
  std::uint64_t duration_ns;
  int result;  // of the driver; 0: success
};

// The pool released wholly free slabs because another request needed the room; each has its own slab_free.
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
  std::uint64_t before;         // charged for them at the previous such record
  std::uint64_t pool_reserved;  // and now
};

struct DeviceFacts {
  int ordinal;
  std::string uuid;
  std::string name;
  std::uint64_t total;
  std::uint64_t limit;  // effective; == total where none was asked for
  bool limit_asked;
  std::uint64_t group_limit = 0;  // of its groups, the smallest in force; 0: none
  std::string mode{};             // the mode that serves it, where it is not the process's
  std::string backing{};          // what its pools are made of; empty: it has none
  std::string backing_reason{};
};

// The first line: program, host and settings.
struct Meta {
  std::string mode;
  int driver_version;  // as cuDriverGetVersion returns it; 0: unknown
  std::vector<DeviceFacts> devices;
  struct Setting {
    std::string key, value, source;
    std::string place{};  // position in a file, or the name of a third-party variable; empty: one of ours
    bool locked = false;  // by a system file
  };
  std::vector<Setting> settings;  // those that are not at their default; the effective one first for each key
  struct ThirdPartyVariable {
    std::string variable, value, disposition, reason;
  };
  std::vector<ThirdPartyVariable> foreign;                       // third-party variables that are set
  std::vector<std::pair<std::string, std::string>> environment;  // our own variables, as they were set
};

// The process that wrote the log.
struct Process {
  std::int64_t pid, parent;
  std::string host, executable, tree;
  std::vector<std::string> arguments;
  std::int64_t start_unix_ns;
};

}  // namespace ration::events
