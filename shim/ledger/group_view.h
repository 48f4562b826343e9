// What a looker sees of the groups in a state folder: who is in them and who holds how much. Looking also clears: what
// the dead held is given back, and the file of a group that nobody is left in is removed.
// Layer: ledger (a leaf). Threads: values; any process may look at any time, without touching the processes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/process_identity.h"

namespace ration::ledger {

// Why an allocation failed, in the order of the counters of a member.
inline constexpr std::array<const char *, 5> kFailureReasons = {"limit", "group", "device", "pool_holds", "fault"};

inline constexpr std::uint64_t kNoLimit = UINT64_MAX;

// One process on one device. Bytes.
struct DeviceUse {
  std::string uuid;                      // as the driver prints it: "GPU-..."
  std::uint64_t reserved = 0;            // charged against limits: what the device holds for the process
  std::uint64_t used = 0;                // blocks that the program holds, as of `told_unix_ns`
  std::uint64_t peak = 0;                // the most that was reserved when the figures were told, or is now
  std::uint64_t limit = kNoLimit;        // of the process alone
  std::uint64_t group_limit = kNoLimit;  // that this process states for the group
  std::uint64_t allocations = 0;         // blocks ever allocated, as of `told_unix_ns`
  std::array<std::uint64_t, kFailureReasons.size()> failures{};
  std::uint64_t told_unix_ns = 0;  // when the process last told used, allocations and failures
};

struct Member : ProcessIdentity {
  std::vector<DeviceUse> devices;  // those that it ever reserved on or was refused on
};

struct GroupDevice {
  std::string uuid;
  std::uint64_t limit = kNoLimit;  // the smallest that a living member states
  std::uint64_t reserved = 0;
};

enum class GroupKind { kNamed, kTree, kNone };  // kNone: processes that were given no group

struct Group {
  GroupKind kind = GroupKind::kNamed;
  std::string name;     // of a tree: its number; of kNone: empty
  std::string problem;  // why its file could not be read, and what to do; the rest is then empty
  std::vector<GroupDevice> devices;
  std::vector<Member> members;
};

// Every group in `state_folder`, sorted by kind and name. A folder that does not exist holds none. `problem`: why the
// folder cannot be looked into, empty when it can.
std::vector<Group> look(const std::string &state_folder, std::string &problem);

// One device of one group. None: nobody in the group has come upon it, or its file cannot be read.
std::optional<GroupDevice> look_at(const std::string &state_folder, GroupKind kind, const std::string &name,
                                   const std::string &uuid);

}  // namespace ration::ledger
