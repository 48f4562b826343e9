// What `ps` and `top` show of one look at the groups: a row for each process and device, a row for each group and
// device. Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ledger/group_view.h"

namespace ration::cli {

// A group as one process is in it, on one device.
struct GroupOfRow {
  ledger::GroupKind kind = ledger::GroupKind::kNone;
  std::string name;                               // whole; empty for kNone
  std::string label;                              // as `label_of`
  std::uint64_t limit = ledger::kNoLimit;         // what holds now, for all members together
  std::uint64_t stated_limit = ledger::kNoLimit;  // by this process
};

struct ProcessRow : ledger::ProcessIdentity {
  ledger::DeviceUse use;
  std::vector<GroupOfRow> groups;
  std::string group_label;  // of all its groups, "a,b"; "-" where it was given none

  [[nodiscard]] std::uint64_t failures() const;
};

struct GroupRow {
  ledger::GroupKind kind = ledger::GroupKind::kNone;
  std::string name;
  std::string label;
  std::string uuid;  // empty: nobody in the group has asked for memory yet
  std::uint64_t limit = ledger::kNoLimit;
  std::uint64_t reserved = 0;
  std::size_t processes = 0;

  [[nodiscard]] std::uint64_t free() const;  // kNoLimit where there is no limit
};

struct Usage {
  std::vector<ProcessRow> processes;  // by what they have reserved, most first
  std::vector<GroupRow> groups;       // in the order of the look
  std::vector<std::string> problems;  // why something is missing, a line each
  std::uint64_t now_unix_ns = 0;

  [[nodiscard]] bool nobody() const { return processes.empty() && groups.empty(); }
};

// A group's name as people see it: a tree by the first eight digits of its number, "-" for no group.
std::string label_of(ledger::GroupKind kind, const std::string &name);

// `folder_problem`: as ledger::look gave it.
Usage usage_of(const std::vector<ledger::Group> &groups, const std::string &folder_problem, std::uint64_t now_unix_ns);

enum class SortKey { kReserved, kUsed, kPid, kAge, kGroup };

// Equal rows come in an order that does not change from one look to the next.
void sort_rows(std::vector<ProcessRow> &rows, SortKey key);

}  // namespace ration::cli
