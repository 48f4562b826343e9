// The groups in a state folder as an observer sees them: members, and what each of them holds. Reading also cleans up:
// it reclaims what dead members held and removes files of groups without members.
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

// What pools of granules (backing vmm) have done. All 0: the process has none on that device.
struct Stitching {
  std::uint64_t granules = 0;  // handles of physical memory that are held
  std::uint64_t blocks = 0;    // live ones that are stitched from granules
  std::uint64_t total = 0;     // blocks ever stitched
};

// One process on one device. Bytes.
struct DeviceUse {
  std::string uuid;                      // as the driver prints it: "GPU-..."
  std::uint64_t reserved = 0;            // charged against limits: what the device holds for the process
  std::uint64_t used = 0;                // blocks that the program holds, as of `published_unix_ns`
  std::uint64_t peak = 0;                // the most that was reserved at a publication, or is now
  std::uint64_t peak_used = 0;           // the most that was ever used, as of `published_unix_ns`
  std::uint64_t limit = kNoLimit;        // of the process alone
  std::uint64_t group_limit = kNoLimit;  // that this process states for the group
  std::uint64_t allocations = 0;         // blocks ever allocated, as of `published_unix_ns`
  std::array<std::uint64_t, kFailureReasons.size()> failures{};
  Stitching stitching{};
  std::uint64_t guarantee = 0;          // of this process, or of the tree for which it holds one
  std::uint64_t covered = 0;            // of `reserved`: what a guarantee covers, its own or its tree's
  std::uint64_t waiting = 0;            // what it waits for
  std::uint64_t published_unix_ns = 0;  // when the process last published used, allocations, failures and stitching
};

struct Member : ProcessIdentity {
  std::uint64_t tree = 0;          // for whose processes it holds a guarantee; 0: none
  std::uint64_t ticket = 0;        // its place among those that wait to start; 0: it does not
  std::vector<DeviceUse> devices;  // those on which it ever reserved or was refused
};

struct GroupDevice {
  std::string uuid;
  std::uint64_t limit = kNoLimit;  // the smallest that a living member states
  std::uint64_t reserved = 0;      // what its members hold
  std::uint64_t claimed = 0;       // the same, and what is guaranteed to them beyond that
  std::uint64_t size = 0;          // of the device's memory; 0: not known
};

// kNone: processes without a group. kQueue: runs without a group that wait for a device, or have what they waited for.
enum class GroupKind { kNamed, kTree, kContainer, kNone, kQueue };

struct Group {
  GroupKind kind = GroupKind::kNamed;
  // Of a tree: its number; of a container: "NAMESPACE-DIGITS"; of kNone and kQueue: empty.
  std::string name;
  std::string problem;  // why its file could not be read, and the remedy; the rest is then empty
  std::vector<GroupDevice> devices;
  std::vector<Member> members;
};

// Every group in `state_folder`, sorted by kind and name. A folder that does not exist holds none. `problem` says why
// the folder cannot be read; it is empty when it can.
std::vector<Group> read_groups(const std::string &state_folder, std::string &problem);

// One device of one group. None: no member has used the device, or the file cannot be read.
std::optional<GroupDevice> read_group_device(const std::string &state_folder, GroupKind kind, const std::string &name,
                                             const std::string &uuid);

// What is left on a device of the guarantee that the named group gives to one of these trees, by their numbers; 0:
// none.
std::uint64_t left_of_guarantee(const std::string &state_folder, const std::string &group,
                                const std::vector<std::string> &trees, const std::string &uuid);

}  // namespace ration::ledger
