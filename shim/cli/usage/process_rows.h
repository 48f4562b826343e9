// The rows of `ps` and `top`: one for each pair of process and device, one for each pair of group and device, and one
// for each device of a snapshot.
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

// One of the groups of a process, on one device.
struct GroupOfRow {
  ledger::GroupKind kind = ledger::GroupKind::kNone;
  std::string name;                               // in full; empty for kNone
  std::string label;                              // from label_of
  std::uint64_t limit = ledger::kNoLimit;         // the limit in force now, for all members together
  std::uint64_t stated_limit = ledger::kNoLimit;  // the limit that this process has set
  // The bytes that the process holds or is guaranteed, whichever is more.
  std::uint64_t claimed = 0;
};

inline constexpr int kNoIndex = -1;  // the index if a device has no number on this machine

struct GroupRow;

// Design: design/ledger.md#rows-of-ps
struct ProcessRow : ledger::ProcessIdentity {
  ledger::DeviceUse use;  // `guarantee`: its tree's guarantee, if that covers the process
  std::vector<GroupOfRow> groups;
  std::string group_label;  // the labels of its groups, such as "a,b"; "-": none
  HostProcess here;         // set if it is in another PID namespace and was found
  std::string user;         // name or number; empty until a snapshot has looked it up
  std::string command;      // its arguments, separated by blanks; empty: unknown
  int gpu = kNoIndex;
  bool is_stand_in = false;  // `ration run`, holding a guarantee for processes that have rows
  std::uint64_t tree = 0;    // the tree whose guarantee it holds; 0: none
  std::uint64_t ticket = 0;  // its position among the runs that wait to start; 0: it does not wait
  bool is_others = false;    // not a process but the memory held on the device outside Ration; only in tables

  [[nodiscard]] bool is_in(const GroupRow &group) const;  // on any device
  [[nodiscard]] std::uint64_t refusals() const;
  [[nodiscard]] int shown_pid() const { return here.pid != 0 ? here.pid : pid; }
  [[nodiscard]] std::string shown_command() const;  // without its folder; if unknown, the program's name
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
  std::uint64_t claimed = 0;     // `reserved`, plus guarantees in excess of it
  std::uint64_t guaranteed = 0;  // the total of all guarantees
  std::size_t waiting = 0;       // the number of members that wait
  std::string user;              // the owner of the group's state folder, if the folders of all users were read
  int gpu = kNoIndex;

  // True if tables omit the row: it is for processes in no group, or for a tree that has no limit and holds nothing.
  [[nodiscard]] bool tells_nothing() const {
    return kind == ledger::GroupKind::kNone ||
           (kind == ledger::GroupKind::kTree && limit == ledger::kNoLimit && claimed == 0 && waiting == 0);
  }
  [[nodiscard]] bool is_of_group(const GroupRow &other) const {  // the same group, perhaps on another device
    return kind == other.kind && name == other.name && user == other.user;
  }
  [[nodiscard]] bool is_idle() const { return claimed == 0 && processes == 0 && waiting == 0; }
  [[nodiscard]] std::uint64_t free() const;  // the unclaimed part of the limit; kNoLimit: there is no limit
};

struct DeviceRow {
  std::string uuid;
  int gpu = kNoIndex;
  std::uint64_t size = 0;  // 0: not known
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
  std::size_t processes = 0;
  // These members come from NVML, if it reports them.
  std::string name;
  std::optional<std::uint64_t> free, others;  // others: the memory held outside Ration
  std::optional<unsigned> utilisation, temperature;

  // The device's memory that is not in the figures above: the driver holds it, for example for processes' contexts.
  [[nodiscard]] std::optional<std::uint64_t> overhead() const;
};

struct Usage {
  std::vector<ProcessRow> processes;  // the largest reservation first
  std::vector<GroupRow> groups;       // in the snapshot's order; a group's rows are sorted by device
  std::vector<DeviceRow> devices;     // sorted by index, then those without an index by UUID
  std::vector<std::string> problems;  // one line for each reason why something is missing
  std::uint64_t now_unix_ns = 0;

  [[nodiscard]] const DeviceRow *device(const std::string &uuid) const;  // nullptr if the device has no row
  [[nodiscard]] bool is_empty() const { return processes.empty() && groups.empty(); }
  [[nodiscard]] bool tells_nothing() const;  // true if the tables would show no process and no group
};

// A member that holds a guarantee for a tree holds no memory itself. The holder has a row on each device where it
// guarantees memory, until a process that the guarantee covers has a row there. The holder counts as a process until
// one of those processes has a row on any device. `folder_problem`: why the state folder could not be read; empty if it
// was read.
Usage usage_of(const std::vector<ledger::Group> &groups, const std::string &folder_problem, std::uint64_t now_unix_ns);

// Adds the usage that was read from another state folder.
void add_usage(Usage &into, Usage more);

// Column titles that the list of sort keys in `top` also uses.
inline constexpr const char *kPeakReservedTitle = "PEAKRES";
inline constexpr const char *kPeakUsedTitle = "PEAKUSED";

enum class SortKey { kReserved, kUsed, kLimit, kPeak, kPeakUsed, kFailures, kAge, kPid, kUser, kGpu, kGroup, kCommand };

// True for sizes, failures and ages. Rows with the largest value (the oldest) then come first, unless reversed.
bool begins_with_largest(SortKey key);

// Rows that compare equal have the same order in every snapshot.
void sort_rows(std::vector<ProcessRow> &rows, SortKey key, bool reversed = false);

// True if the text occurs in the row's program, command, user, group, container or process ID. Ignores case.
bool matches(const ProcessRow &row, std::string_view text);

}  // namespace ration::cli
