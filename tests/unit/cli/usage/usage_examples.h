// Example groups, as a snapshot of the ledger returns them. Threads: values.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/usage/device_rows.h"
#include "cli/usage/process_rows.h"

namespace ration::cli {

inline constexpr std::uint64_t kMi = 1ull << 20;
inline constexpr std::uint64_t kGi = 1ull << 30;
inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline constexpr std::uint64_t kNow = 1'700'000'000 * kSecond;
inline constexpr char kFirstGpu[] = "GPU-1f2e3d4c-0000-0000-0000-000000000001";
inline constexpr char kSecondGpu[] = "GPU-99887766-0000-0000-0000-000000000002";

inline ledger::DeviceUse use(const std::string &uuid, std::uint64_t reserved) {
  ledger::DeviceUse out;
  out.uuid = uuid;
  out.reserved = reserved;
  out.used = reserved / 2;
  out.peak = reserved;
  out.peak_used = reserved / 2;
  out.published_unix_ns = kNow - kSecond;
  return out;
}

inline ledger::Member member(std::uint64_t identity, int pid, std::vector<ledger::DeviceUse> devices) {
  ledger::Member out;
  out.identity = identity;
  out.pid = pid;
  out.uid = 1000;
  out.pid_namespace = 4026531836;
  out.start_unix_ns = kNow - 90 * kSecond;
  out.program = "train";
  out.devices = std::move(devices);
  return out;
}

// On devices for which the test states no claim, the reserved bytes count as claimed.
inline ledger::Group group(ledger::GroupKind kind, const std::string &name, std::vector<ledger::GroupDevice> devices,
                           std::vector<ledger::Member> members) {
  for (ledger::GroupDevice &device : devices) {
    device.claimed = std::max(device.claimed, device.reserved);
  }
  return {kind, name, "", std::move(devices), std::move(members)};
}

inline Usage usage(const std::vector<ledger::Group> &groups) {
  return usage_of(groups, "", kNow);
}

// NVML's figures for an 80 GiB device of which 5 GiB are used, 1 GiB of them by process 10.
inline DeviceFigures figures_of(const std::string &uuid) {
  return {uuid, "NVIDIA H200", 0, DeviceFigures::Memory{80 * kGi, 75 * kGi, 5 * kGi}, {{10, kGi}}, 37, 54};
}

inline constexpr char kTree[] = "00000000000000a7";

// A group of 8 GiB, of which 3 GiB are guaranteed to a tree and 1 GiB to the process "own", which waits for 2 GiB. The
// holder has pid 5; its tree has pids 6 and 7, which hold `of_tree` on the first GPU. Empty: no device yet.
inline std::vector<ledger::Group> with_guarantees(const std::vector<std::uint64_t> &of_tree) {
  ledger::DeviceUse held = use(kFirstGpu, 0);
  held.guarantee = 3 * kGi;
  ledger::Member holder = member(5, 5, {held});
  holder.program = "ration";
  holder.tree = 0xa7;
  ledger::DeviceUse of_own = use(kFirstGpu, kGi / 2);
  of_own.guarantee = kGi;
  of_own.covered = kGi / 2;
  of_own.waiting = 2 * kGi;
  ledger::Member own = member(9, 9, {of_own});
  own.program = "own";
  std::vector<ledger::Member> tree;
  std::uint64_t reserved = kGi / 2;
  for (std::uint64_t i = 0; i < std::max<std::size_t>(of_tree.size(), 1); ++i) {
    tree.push_back(member(6 + i, static_cast<int>(6 + i), {}));
    if (i < of_tree.size()) {
      tree.back().devices = {use(kFirstGpu, of_tree[i])};
      reserved += of_tree[i];
    }
  }
  std::vector<ledger::Member> members = {holder, own};
  members.insert(members.end(), tree.begin(), tree.end());
  return {group(ledger::GroupKind::kNamed, "a", {{kFirstGpu, 8 * kGi, reserved, 4 * kGi}}, members),
          group(ledger::GroupKind::kTree, kTree, {{kFirstGpu, ledger::kNoLimit, reserved - kGi / 2}}, tree)};
}

// One process in no group.
inline Usage one_process(ledger::Member process) {
  return usage({group(ledger::GroupKind::kNone, "", {}, {std::move(process)})});
}

}  // namespace ration::cli
