// The groups in a state folder as an observer sees them: their members, and the memory that each member holds. Reading
// also cleans up: it reclaims the memory of dead members, and removes the files of groups that have no members.
// Layer: ledger (a leaf). Threads: values; any process may read at any time, without disturbing the members.
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

// Counts for the pools made of granules (backing vmm). All are 0 if the process has no such pool on that device.
struct Stitching {
  std::uint64_t granules = 0;  // handles of physical memory that are held
  std::uint64_t blocks = 0;    // live blocks that are stitched from granules
  std::uint64_t total = 0;     // blocks ever stitched
};

// The memory of one process on one device, in bytes.
struct DeviceUse {
  std::string uuid;                      // as the driver prints it: "GPU-..."
  std::uint64_t reserved = 0;            // charged against limits: what the device holds for the process
  std::uint64_t used = 0;                // in blocks that the program holds, as of `published_unix_ns`
  std::uint64_t peak = 0;                // the largest value that `reserved` has now or had at any publication
  std::uint64_t peak_used = 0;           // the largest value of `used` ever, as of `published_unix_ns`
  std::uint64_t limit = kNoLimit;        // the process's own
  std::uint64_t group_limit = kNoLimit;  // the limit that this process states for the group
  std::uint64_t allocations = 0;         // blocks ever allocated, as of `published_unix_ns`
  std::array<std::uint64_t, kFailureReasons.size()> failures{};
  Stitching stitching{};
  std::uint64_t guarantee = 0;          // of this process, or of the tree for which it holds one
  std::uint64_t covered = 0;            // the part of `reserved` covered by its own or its tree's guarantee
  std::uint64_t waiting = 0;            // bytes for which the process waits; 0: it does not wait
  std::uint64_t published_unix_ns = 0;  // when the process last published used, allocations, failures and stitching
};

struct Member : ProcessIdentity {
  std::uint64_t tree = 0;          // the tree for whose processes the member holds a guarantee; 0: none
  std::uint64_t ticket = 0;        // its position among the processes that wait to start; 0: it does not wait
  std::vector<DeviceUse> devices;  // devices on which it ever reserved memory or was refused memory
};

struct GroupDevice {
  std::string uuid;
  std::uint64_t limit = kNoLimit;  // the smallest limit that a living member states
  std::uint64_t reserved = 0;      // the memory that its members hold
  std::uint64_t claimed = 0;       // `reserved` plus the part of the members' guarantees that they do not hold yet
  std::uint64_t size = 0;          // size of the device's memory; 0: not known
};

// kNone: the processes without a group. kQueue: the runs without a group that are waiting for a device, or that waited
// and got their device.
enum class GroupKind { kNamed, kTree, kContainer, kNone, kQueue };

struct Group {
  GroupKind kind = GroupKind::kNamed;
  // For a tree, its number; for a container, "NAMESPACE-DIGITS"; empty for kNone and kQueue.
  std::string name;
  std::string problem;  // why the group's file could not be read, and the remedy; the vectors are then empty
  std::vector<GroupDevice> devices;
  std::vector<Member> members;
};

// Every group in `state_folder`, sorted by kind and name. A folder that does not exist contains no groups. `problem`
// says why the folder cannot be read, and is empty if it can be read.
std::vector<Group> read_groups(const std::string &state_folder, std::string &problem);

// One device of one group. Returns nullopt if no member has used the device, or if the file cannot be read.
std::optional<GroupDevice> read_group_device(const std::string &state_folder, GroupKind kind, const std::string &name,
                                             const std::string &uuid);

// How much of the guarantee that a tree has in the named group is left on a device. `trees`: the numbers of the trees
// to consider. Returns 0 if none of the trees has a guarantee or nothing is left of it.
std::uint64_t left_of_guarantee(const std::string &state_folder, const std::string &group,
                                const std::vector<std::string> &trees, const std::string &uuid);

}  // namespace ration::ledger
