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

// How the call reached us; best effort.
enum class Via { driver, runtime };

struct Alloc {
  std::uint64_t address;
  std::uint64_t size;       // what it is charged with
  std::uint64_t requested;  // what the program asked for
  int device;
  unsigned context;  // number of the context in order of appearance, from 1; 0 unknown
  const char *api;
  const char *kind;    // device, host, managed, ...
  const char *source;  // driver or pool
  Via via;
  std::uint64_t duration_ns;
};

struct Free {
  std::uint64_t address;
  std::uint64_t size;
  int device;
  unsigned context;
  const char *api;           // the call that ended the block: a free, or what took its context away
  std::uint64_t stream = 0;  // handle that a stream-ordered free named; 0: none
};

struct Oom {
  int device;
  const char *api;
  std::uint64_t requested;
  Reason reason;
  std::uint64_t used;         // charged on the device when it was denied
  std::uint64_t limit;        // effective limit; the device's total where none was asked
  std::uint64_t device_free;  // what the driver says is free
  std::uint64_t largest_free;
};

struct DeviceFacts {
  int ordinal;
  std::string uuid;
  std::string name;
  std::uint64_t total;
  std::uint64_t limit;  // effective; == total where none was asked
  bool limit_asked;
};

// The first line: what ran, where, under which settings.
struct Meta {
  std::string mode;
  int driver_version;  // as cuDriverGetVersion says it; 0 unknown
  std::vector<DeviceFacts> devices;
  struct Setting {
    std::string key, value, source;
  };
  std::vector<Setting> settings;                                 // those that are not at their default
  std::vector<std::pair<std::string, std::string>> environment;  // our own variables, as they were set
};

}  // namespace ration::events
