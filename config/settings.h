// The settings of a process, read once (context.h). Flags of `ration run` arrive as variables.
// Layer: config, a leaf. Threads: values; read-only after resolve_devices.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/problem.h"
#include "config/source.h"
#include "config/third_party/third_party.h"
#include "config/values/faults.h"
#include "config/values/limit_map.h"
#include "config/values/size.h"

namespace ration::config {

enum class Mode { kPool, kAsync, kDirect };
enum class Backing { kSlab, kVmm, kAuto };
enum class Preallocate { kAuto, kTrue, kFalse };
enum class Free { kDeferred, kSynchronous };
enum class Managed { kLimit, kCount };
enum class Ipc { kAuto, kDirect };
enum class Stacks { kNone, kNative, kPython };

enum class DiagnosticLevel { kOff, kWarn, kInfo, kDebug, kTrace };

struct Settings {
  bool disabled = false;
  LimitMap limit;
  Mode mode = Mode::kPool;
  std::variant<Preallocate, Size> preallocate = Preallocate::kAuto;
  Size preallocate_after = Size::of_bytes(32 * kMiB);
  std::optional<Size> headroom;                        // nullopt: max(512 MiB, 2 %)
  std::variant<bool, Size> async_preallocate = false;  // true: as much as mode pool with preallocate=true
  bool deterministic_reuse = false;                    // mode async: TF_DETERMINISTIC_ALLOCATOR
  Backing backing = Backing::kAuto;
  std::optional<Size> granule;
  std::optional<Size> release_threshold;
  Free free = Free::kDeferred;
  Managed managed = Managed::kLimit;
  std::optional<Size> reserve;
  std::vector<Size> more_reserves;  // beside `reserve`, from locked keys and weaker sources; the largest holds
  bool show_limit = true;
  bool charge_context = false;
  LimitMap guarantee;
  Ipc ipc = Ipc::kAuto;
  std::string log;  // a template for expand_path; empty: no log
  std::optional<Size> log_size;
  Stacks stacks = Stacks::kNone;
  std::vector<Fault> fail;
  std::chrono::milliseconds wait{0};
  DiagnosticLevel diagnostics = DiagnosticLevel::kWarn;
  std::string diagnostics_file;  // empty: stderr
  std::string config_file;
  std::string state_directory;    // RATION_STATE_DIR, absolute, or empty; use state_folder()
  std::string summary_directory;  // RATION_SUMMARY; empty: none
  std::string flag_marks;         // RATION_FLAGS, for flag_marks.h

  // A limit could not be parsed: the strictest reading holds on every device.
  bool limit_in_doubt = false;

  // Processes that share a limit with this one.
  struct Group {
    // In the order of `groups`. kTree: what one `ration run --group-tree` starts. kContainer: processes of one PID
    // namespace that state the same limit.
    enum class Kind { kTree, kContainer, kNamed };
    Kind kind = Kind::kNamed;
    std::string name;       // of a tree: its number; of a container: container_name() in groups.h
    LimitMap limit;         // empty and not in doubt: the group only counts
    bool in_doubt = false;  // its limit could not be parsed

    [[nodiscard]] std::string_view key_of_limit() const {
      constexpr std::string_view kKeys[] = {"group_tree", "container_limit", "group_limit"};
      return kKeys[static_cast<std::size_t>(kind)];
    }
  };
  std::vector<Group> groups;   // trees from the outermost to the innermost, then containers, then the named one
  LimitMap stray_group_limit;  // a group limit without a usable group; holds for this process alone

  // Every setting that some source sets, in the order of options.inc. Of one key the value in force comes first, then
  // the limits that hold beside it.
  std::vector<Origin> origins;
  [[nodiscard]] const Origin *origin_of(std::string_view key) const;  // nullptr: default
  std::vector<ThirdPartyVariable> third_party;                        // every one that is set
  std::vector<std::string> files;                                     // that exist, strongest first

  // What was read and where it comes from, a sentence each: for diagnostics.
  [[nodiscard]] std::vector<std::string> explained() const;

  // Whether any device has a limit. A group counts as one: other members may state its limit.
  [[nodiscard]] bool limit_asked() const;

  // What the process may take on a device, and whether that is a requested limit.
  struct Limit {
    bool asked = false;
    std::uint64_t bytes = 0;  // min(every limit, total); total without a limit
  };
  [[nodiscard]] Limit limit_on(const DeviceIdentity &device) const;

  // The limit that this process states for one of `groups` on a device, at most its total; nullopt: none.
  [[nodiscard]] std::optional<std::uint64_t> group_limit_on(const Group &group, const DeviceIdentity &device) const;

  // What the named group always leaves to this process on a device, at most its limit; 0: nothing.
  [[nodiscard]] std::uint64_t guarantee_on(const DeviceIdentity &device) const;

  // The folder of the group ledgers: absolute; the first process that needs it creates it.
  [[nodiscard]] std::string state_folder() const;

  // What the pool takes from a device in one piece. Bytes.
  struct Preallocation {
    std::uint64_t bytes = 0;      // at most the limit; 0: the pool grows on demand
    std::uint64_t after = 0;      // live bytes that trigger it
    std::uint64_t headroom = 0;   // free memory of the device that it leaves alone
    bool leaves_context = false;  // and no less than a context takes there, because no headroom was asked for
    bool fair = false;            // in a group: its part alone, because no size was asked for
  };
  // `asked`: `auto` is `true`, because something else asks for it.
  // Design: design/placement.md#how-much-at-once
  [[nodiscard]] Preallocation preallocation_on(const DeviceIdentity &device, bool asked = false) const;

  // Call once, when the devices are known: reports items of a limit that match no device or several, and applies the
  // strictest reading to ambiguous ones. Without this call an item holds on every device that it fits.
  void resolve_devices(const std::vector<DeviceIdentity> &devices, std::vector<Problem> &problems);

  // One for each limit that was asked for and that a locked one cuts down on a device.
  [[nodiscard]] std::vector<Problem> cut_by_locks(const std::vector<DeviceIdentity> &devices) const;
};

// From `environment` (NULL-terminated "NAME=value" list) and the files that it names only; context.h has the other
// sources. Throws only bad_alloc.
Settings read_environment(const char *const *environment, std::vector<Problem> &problems);

// `pattern` with %p (pid), %h (host), %n (program's short name) and %% replaced; any other % stays.
std::string expand_path(std::string_view pattern, long pid, std::string_view host, std::string_view program);

// Where a process writes the log that a setting names: without ".zst" at its end, by which the setting asks `ration
// run` to compress the log at last.
inline constexpr const char *kCompressedLog = ".zst";
std::string plain_log(const std::string &path);

// The one place that touches the environment of this process. Never null.
const char *const *process_environment();

}  // namespace ration::config
