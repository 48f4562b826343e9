// The settings of a process, read once (settings_context.h). Options of `ration run` arrive as environment variables.
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
  std::variant<bool, Size> async_preallocate = false;  // true: the same amount as in mode pool with preallocate=true
  bool deterministic_reuse = false;                    // mode async, set by TF_DETERMINISTIC_ALLOCATOR
  Backing backing = Backing::kAuto;
  std::optional<Size> granule;
  std::optional<Size> release_threshold;
  Free free = Free::kDeferred;
  Managed managed = Managed::kLimit;
  std::optional<Size> reserve;
  std::vector<Size> more_reserves;  // from locked keys and weaker sources; the largest of all applies
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

  // A limit could not be parsed, so the strictest reading applies to every device.
  bool limit_in_doubt = false;

  // Processes that share a limit with this one.
  struct Group {
    // In the order of `groups`. kTree: all processes that one `ration run --group-tree` starts. kContainer: the
    // processes of one PID namespace that state the same limit.
    enum class Kind { kTree, kContainer, kNamed };
    Kind kind = Kind::kNamed;
    std::string name;       // for a tree, its number; for a container, container_name() in groups.h
    LimitMap limit;         // if empty and not in doubt, the group only counts its memory
    bool in_doubt = false;  // its limit could not be parsed

    [[nodiscard]] std::string_view key_of_limit() const {
      constexpr std::string_view kKeys[] = {"group_tree", "container_limit", "group_limit"};
      return kKeys[static_cast<std::size_t>(kind)];
    }
  };
  std::vector<Group> groups;   // trees from the outermost to the innermost, then containers, then the named one
  LimitMap stray_group_limit;  // a group limit without a usable group; applies to this process alone

  // Every setting that some source sets, in the order of options.inc. For each key the value in force comes first, then
  // the additional limits.
  std::vector<Origin> origins;
  [[nodiscard]] const Origin *origin_of(std::string_view key) const;  // nullptr: default
  std::vector<ThirdPartyVariable> third_party;                        // all that are set
  std::vector<std::string> files;                                     // the existing files of settings, strongest first

  // The settings that were read and their sources, one sentence for each setting; for diagnostics.
  [[nodiscard]] std::vector<std::string> explained() const;

  // True if any device has a limit. A group counts as a limit, because other members may state one for it.
  [[nodiscard]] bool limit_asked() const;

  // How much memory the process may use on a device, and whether a limit was requested.
  struct Limit {
    bool asked = false;
    std::uint64_t bytes = 0;  // min(every limit, total); total without a limit
  };
  [[nodiscard]] Limit limit_on(const DeviceIdentity &device) const;

  // The limit that this process states for one of `groups` on a device, at most the device's total; nullopt: none.
  [[nodiscard]] std::optional<std::uint64_t> group_limit_on(const Group &group, const DeviceIdentity &device) const;

  // The memory that the named group always leaves to this process on a device, at most limit_on(device); 0: none.
  [[nodiscard]] std::uint64_t guarantee_on(const DeviceIdentity &device) const;

  // The absolute path of the folder of the group ledgers. The first process that needs it creates it.
  [[nodiscard]] std::string state_folder() const;

  // The memory that the pool takes from a device in one piece, in bytes.
  struct Preallocation {
    std::uint64_t bytes = 0;      // at most the limit; 0: the pool grows on demand
    std::uint64_t after = 0;      // the number of live bytes that triggers the preallocation
    std::uint64_t headroom = 0;   // free memory of the device that the pool does not take
    bool leaves_context = false;  // no headroom was set, so at least a context's memory is left
    bool fair = false;            // no size was set, so in a group only this process's part is taken
  };
  // `asked`: treat `auto` as `true`, because something else asks for a preallocation.
  // Design: design/placement.md#how-much-at-once
  [[nodiscard]] Preallocation preallocation_on(const DeviceIdentity &device, bool asked = false) const;

  // Call once, when the devices are known. Reports items of a limit that match no device or several devices, and
  // applies the strictest reading to ambiguous ones. Until this call, an item applies to every device that it matches.
  void resolve_devices(const std::vector<DeviceIdentity> &devices, std::vector<Problem> &problems);

  // Returns one problem for each requested limit that a locked limit reduces on a device.
  [[nodiscard]] std::vector<Problem> cut_by_locks(const std::vector<DeviceIdentity> &devices) const;
};

// Reads only `environment` (a NULL-terminated "NAME=value" list) and the files that it names; settings_context.h adds
// the other sources. Throws only bad_alloc.
Settings read_environment(const char *const *environment, std::vector<Problem> &problems);

// `pattern` with %p (pid), %h (host), %n (the program's short name) and %% replaced; any other % is kept.
std::string expand_path(std::string_view pattern, long pid, std::string_view host, std::string_view program);

// The path of the file that a process writes when a setting names the log `path`. A ".zst" at the end of `path` is
// removed, because it only tells `ration run` to compress the finished log.
inline constexpr const char *kCompressedLog = ".zst";
std::string plain_log(const std::string &path);

// The environment of this process; no other function reads it. Never null.
const char *const *process_environment();

}  // namespace ration::config
