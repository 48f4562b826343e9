// What can happen to memory, one struct an event; keys and names as in the log.
// Layer: events (a leaf). Sizes are bytes, times nanoseconds. Strings are the caller's and outlive the call.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ration::events {

// Why an allocation was denied.
enum class Reason { limit, group, device, pool_holds, fault };
inline constexpr int kReasonCount = 5;
const char *name_of(Reason reason);

// Where a block came from. What is the driver's own moves the reserved bytes; a block of the pool lies in a slab, whose
// own record moved them.
enum class Source { driver, pool };
const char *name_of(Source source);

// What kind of memory it is. Host memory, and managed memory that is only counted, moves no device's totals.
enum class Kind { device, managed, host, array, vmm, pool };
const char *name_of(Kind kind);

// How the call reached us; best effort.
enum class Via { driver, runtime };

struct Alloc {
  std::uint64_t address;
  std::uint64_t size;       // what it takes: in the pool as rounded to a granule, else what it is charged with
  std::uint64_t requested;  // what the program asked for
  int device;
  unsigned context;  // number of the context in order of appearance, from 1; 0 unknown
  const char *api;
  Kind kind;
  Source source;
  Via via;
  std::uint64_t duration_ns;
  std::uint64_t slab = 0;  // number of the slab that it lies in; 0: none
  bool charged = true;     // counts against the limit
};

struct Free {
  std::uint64_t address;
  std::uint64_t size;
  int device;
  unsigned context;
  const char *api;           // the call that ended the block: a free, or what took its context away
  std::uint64_t stream = 0;  // handle that a stream-ordered free named; 0: none
  Source source = Source::driver;
  Kind kind = Kind::device;
  bool charged = true;
};

// The group whose limit was in the way, and who holds most of it.
struct GroupState {
  std::string name;  // a tree's is its number behind "tree:"; empty: no group was in the way
  std::uint64_t limit = 0;
  std::uint64_t reserved = 0;
  struct Holder {
    int pid;  // in its own namespace
    std::string program;
    std::uint64_t reserved;
  };
  std::vector<Holder> holders;
};

struct Oom {
  int device;
  const char *api;
  std::uint64_t requested;
  Reason reason;
  std::uint64_t used;         // held on the device by the program when it was denied
  std::uint64_t limit;        // effective limit; the device's total where none was asked
  std::uint64_t device_free;  // what the driver says is free
  std::uint64_t largest_free;
  std::uint64_t reserved = 0;     // charged on the device: slabs, whatever lies in them, and what is the driver's own
  std::uint64_t quarantined = 0;  // freed, but not known to be out of use
  bool capturing = false;         // a capture ran, so that nothing quarantined could be cleaned
  GroupState group{};
  bool sharing = false;  // no memory was refused but a handle to share some: counted apart from the others
};

// The pool got memory from the driver.
struct SlabAlloc {
  std::uint64_t address;
  std::uint64_t size;
  int device;
  unsigned context;     // as in Alloc
  std::uint64_t slab;   // its number, from 1, never used twice
  const char *backend;  // the driver's call, for instance cuMemAlloc_v2
  const char *why;      // preallocate or grow
  std::uint64_t duration_ns;
};

// The pool gave a slab back, or lost it with its context.
struct SlabFree {
  std::uint64_t address;
  std::uint64_t size;
  int device;
  unsigned context;
  std::uint64_t slab;
  const char *api;  // the program's call that made us do it, or that took the context away
};

// A call of the program stood still until the device had got somewhere.
struct Wait {
  int device;
  const char *api;
  const char *how;       // event or synchronize
  std::uint64_t blocks;  // that were clean after it
  std::uint64_t bytes;
  std::uint64_t duration_ns;
  int result;  // of the driver; 0 success
};

// Wholly free slabs went back because something else needed the room; each has its own slab_free.
struct Trim {
  int device;
  const char *api;
  std::uint64_t slabs;
  std::uint64_t bytes;
};

// What the driver's own memory pools hold of a device has changed.
struct Sample {
  int device;
  const char *api;              // the program's call that showed it
  std::uint64_t before;         // charged for them at the last such record
  std::uint64_t pool_reserved;  // and now
};

struct DeviceFacts {
  int ordinal;
  std::string uuid;
  std::string name;
  std::uint64_t total;
  std::uint64_t limit;  // effective; == total where none was asked
  bool limit_asked;
  std::string mode{};  // what serves it, where that is not the process's mode
};

// The first line: what ran, where, under which settings.
struct Meta {
  std::string mode;
  int driver_version;  // as cuDriverGetVersion says it; 0 unknown
  std::vector<DeviceFacts> devices;
  struct Setting {
    std::string key, value, source;
    std::string place{};  // in a file, or somebody else's variable; empty: one of ours
    bool locked = false;  // by a system file
  };
  std::vector<Setting> settings;  // those that are not at their default; of one key first what holds
  struct Foreign {
    std::string variable, value, standing, reason;
  };
  std::vector<Foreign> foreign;                                  // the field's variables that are set
  std::vector<std::pair<std::string, std::string>> environment;  // our own variables, as they were set
};

// Who wrote the log.
struct Process {
  std::int64_t pid, parent;
  std::string host, executable, tree;
  std::vector<std::string> arguments;
  std::int64_t start_unix_ns;
};

}  // namespace ration::events
