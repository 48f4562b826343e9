// What the user asked for, read once (surroundings.h); flags of `ration run` travel in the environment.
// Layer: config, a leaf. Threads: values; after meet_devices everything is read-only.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/limit_map.h"
#include "config/problem.h"
#include "config/size.h"
#include "config/source.h"
#include "config/third_party/third_party.h"

namespace ration::config {

enum class Mode { kPool, kAsync, kDirect };
enum class Backing { kSlab, kVmm, kAuto };
enum class Free { kDeferred, kSynchronous };
enum class Managed { kLimit, kCount };
enum class Ipc { kAuto, kDirect };
enum class Stacks { kNone, kNative, kPython };

struct Settings {
  bool disabled = false;
  LimitMap limit;
  Mode mode = Mode::kPool;
  std::variant<bool, Size> preallocate = true;
  Size preallocate_after = Size::of_bytes(32 * kMiB);
  std::optional<Size> headroom;                        // none: max(512 MiB, 2 %)
  std::variant<bool, Size> async_preallocate = false;  // true: what mode pool would have preallocated
  bool deterministic_reuse = false;                    // mode async: TF_DETERMINISTIC_ALLOCATOR
  Backing backing = Backing::kSlab;
  Free free = Free::kDeferred;
  Managed managed = Managed::kLimit;
  std::optional<Size> large_alignment;
  std::optional<Size> reserve;
  std::vector<Size> more_reserves;  // locked in a system file, or all that could be read: the largest holds
  bool show_limit = true;
  bool charge_context = false;
  std::optional<Size> guarantee;
  Ipc ipc = Ipc::kAuto;
  std::string log;  // a template for expand_path; empty = none
  Stacks stacks = Stacks::kNone;
  std::string fail;
  std::chrono::milliseconds wait{0};
  std::string config_file;
  std::string state_directory;    // RATION_STATE_DIR, absolute; empty = none. state_folder() is the answer
  std::string summary_directory;  // RATION_SUMMARY; empty = none
  std::string flag_marks;         // RATION_FLAGS, for flag_marks.h

  // A limit that was asked for could not be read: the strictest reading holds on every device.
  bool limit_in_doubt = false;

  // Processes that share a limit, this one among them.
  struct Group {
    bool tree = false;      // made by `ration run --group-tree`
    std::string name;       // a tree's is its number
    LimitMap limit;         // with no doubt beside it, empty: the group only counts
    bool in_doubt = false;  // its limit could not be read
  };
  std::vector<Group> groups;   // trees from the outermost to the innermost, then the named one
  LimitMap stray_group_limit;  // of a group that was not given, or not so that it can be found: this process's own

  // Every setting that is said anywhere, in the order of options.inc; of one key first what holds, then what limits
  // beside it.
  std::vector<Origin> origins;
  [[nodiscard]] const Origin *origin_of(std::string_view key) const;  // nullptr: the default holds
  std::vector<ThirdPartyVariable> foreign;                            // every one that is set
  std::vector<std::string> files;                                     // that were there, the strongest first

  // Whether a limit was asked for on any device at all. A group is one: other members may state its limit.
  [[nodiscard]] bool limit_asked() const;

  // What the process may take on a device and whether anyone asked for that.
  struct Limit {
    bool asked = false;
    std::uint64_t bytes = 0;  // min(every limit, total); total where none was asked for
  };
  [[nodiscard]] Limit limit_on(const DeviceIdentity &device) const;

  // What this process states as the limit of one of `groups` on a device, at most its total; none where it states none.
  [[nodiscard]] std::optional<std::uint64_t> group_limit_on(const Group &group, const DeviceIdentity &device) const;

  // Where the books of groups lie: absolute, and there only once somebody has made it.
  [[nodiscard]] std::string state_folder() const;

  // What the pool takes from a device at once. All in bytes.
  struct Preallocation {
    std::uint64_t bytes = 0;     // at most the limit; 0: none, the pool grows on demand
    std::uint64_t after = 0;     // once so many are live there
    std::uint64_t headroom = 0;  // what it leaves of the memory that is really free
  };
  [[nodiscard]] Preallocation preallocation_on(const DeviceIdentity &device) const;

  // Call once, when the devices are known: says which item of a limit means no device or several, and holds the
  // doubtful ones to the strictest reading. A limit holds without this call too, on every device that an item fits.
  void meet_devices(const std::vector<DeviceIdentity> &devices, std::vector<Problem> &problems);
};

// Of nothing but `environment` (NULL-terminated "NAME=value" list) and the files that it names; surroundings.h has the
// rest. Throws nothing but bad_alloc.
Settings read_environment(const char *const *environment, std::vector<Problem> &problems);

// `pattern` with %p (pid), %h (host), %n (program's short name) and %% replaced; anything else behind a % stays.
std::string expand_path(std::string_view pattern, long pid, std::string_view host, std::string_view program);

// The one place that touches the environment of this process.
const char *const *process_environment();

}  // namespace ration::config
