// The rows of `ps` and `top`: one for each process and device, for each group and device, and for each device of a
// snapshot.
// Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/base/group_label.h"
#include "cli/usage/host_processes.h"
#include "ledger/group_view.h"

namespace ration::cli {

// A group of one process on one device.
struct GroupOfRow {
  ledger::GroupKind kind = ledger::GroupKind::kNone;
  std::string name;                               // in full; empty for kNone
  std::string label;                              // from label_of
  std::uint64_t limit = ledger::kNoLimit;         // in force now, for all members together
  std::uint64_t stated_limit = ledger::kNoLimit;  // by this process
  std::uint64_t claimed = 0;                      // the larger of what the process holds and what is guaranteed to it
};

inline constexpr int kNoIndex = -1;  // of a device that this machine does not number

struct GroupRow;

// Design: design/ledger.md#rows-of-ps
struct ProcessRow : ledger::ProcessIdentity {
  ledger::DeviceUse use;  // `guarantee`: that of its tree, where that covers it
  std::vector<GroupOfRow> groups;
  std::string group_label;  // of all its groups, "a,b"; "-" where it has none
  HostProcess here;         // of another PID namespace, where it is found
  std::string user;         // name, or number; empty until a snapshot has asked
  std::string command;      // its arguments, blanks between; empty: unknown
  int gpu = kNoIndex;
  bool is_stand_in = false;  // `ration run`, which holds a guarantee for processes that have rows
  std::uint64_t tree = 0;    // for whose processes it holds a guarantee; 0: none
  std::uint64_t ticket = 0;  // its place among the runs that wait to start; 0: it does not
  bool is_others = false;    // no process: what is held on the device outside Ration, for tables alone

  [[nodiscard]] bool is_in(const GroupRow &group) const;  // on any device
  [[nodiscard]] std::uint64_t refusals() const;
  [[nodiscard]] int shown_pid() const { return here.pid != 0 ? here.pid : pid; }
  [[nodiscard]] std::string shown_command() const;  // or the program's name, both without folder
  [[nodiscard]] std::string shown_program() const;  // without folder: "train", "ration run train"
};

struct GroupRow {
  ledger::GroupKind kind = ledger::GroupKind::kNone;
  std::string name;
  std::string label;
  std::string uuid;  // empty: no member has requested memory yet
  std::uint64_t limit = ledger::kNoLimit;
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
  std::uint64_t device_size = 0;  // 0: not known
  std::size_t processes = 0;
  std::uint64_t claimed = 0;     // reserved, and what is guaranteed beyond that
  std::uint64_t guaranteed = 0;  // in all
  std::size_t waiting = 0;       // members
  std::string user;              // whose state folder it is in, where those of all users were read
  int gpu = kNoIndex;

  // Tables leave it out: of processes that are in no group, or a tree without a limit that holds nothing.
  [[nodiscard]] bool tells_nothing() const {
    return kind == ledger::GroupKind::kNone ||
           (kind == ledger::GroupKind::kTree && limit == ledger::kNoLimit && claimed == 0 && waiting == 0);
  }
  [[nodiscard]] bool is_of_group(const GroupRow &other) const {  // the same, on another device
    return kind == other.kind && name == other.name && user == other.user;
  }
  [[nodiscard]] bool is_idle() const { return claimed == 0 && processes == 0 && waiting == 0; }
  [[nodiscard]] std::uint64_t free() const;  // what nobody has a right to; kNoLimit where there is no limit
};

struct DeviceRow {
  std::string uuid;
  int gpu = kNoIndex;
  std::uint64_t size = 0;  // 0: not known
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
  std::size_t processes = 0;
  // As NVML reports them, where it does.
  std::string name;
  std::optional<std::uint64_t> free, others;  // others: held outside Ration
  std::optional<unsigned> utilisation, temperature;
};

struct Usage {
  std::vector<ProcessRow> processes;  // the largest reservation first
  std::vector<GroupRow> groups;       // in the order of the snapshot; of one group by device
  std::vector<DeviceRow> devices;     // by index; those without one behind them, by UUID
  std::vector<std::string> problems;  // why something is missing, one line each
  std::uint64_t now_unix_ns = 0;

  [[nodiscard]] const DeviceRow *device(const std::string &uuid) const;  // nullptr: it has no row
  [[nodiscard]] bool is_empty() const { return processes.empty() && groups.empty(); }
  [[nodiscard]] bool tells_nothing() const;  // tables have no row of a process or a group
};

// A member that holds a guarantee for a tree has a row only where it guarantees something, until a process that it
// covers has one on that device: it holds nothing itself. Counts have it until one of them has a row anywhere.
// `folder_problem`: why the state folder could not be read, empty if it was.
Usage usage_of(const std::vector<ledger::Group> &groups, const std::string &folder_problem, std::uint64_t now_unix_ns);

// Adds what another state folder holds.
void add_usage(Usage &into, Usage more);

// Of the columns, and of the keys of top.
inline constexpr const char *kPeakReservedTitle = "PEAKRES";
inline constexpr const char *kPeakUsedTitle = "PEAKUSED";

enum class SortKey { kReserved, kUsed, kLimit, kPeak, kPeakUsed, kFailures, kAge, kPid, kUser, kGpu, kGroup, kCommand };

// Whether rows begin with the largest, where the order is not reversed: sizes, failures and ages (the oldest).
bool begins_with_largest(SortKey key);

// Equal rows keep the same order in each snapshot.
void sort_rows(std::vector<ProcessRow> &rows, SortKey key, bool reversed = false);

// Whether the text occurs, in capital or small letters, in what names the row: program, command, user, group, container
// or process ID.
bool matches(const ProcessRow &row, std::string_view text);

}  // namespace ration::cli
