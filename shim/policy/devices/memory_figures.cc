#include "policy/devices/memory_figures.h"

#include <algorithm>

#include "base/saturating.h"
#include "ledger/device_key.h"
#include "ledger/group_view.h"

namespace ration::policy {
namespace {

constexpr std::size_t kUuidLength = sizeof("GPU-01234567-89ab-cdef-0123-456789abcdef") - 1;

// The smallest limit of the groups on the device, and how much the groups have left; nullopt if no group has a limit.
struct InGroups {
  std::uint64_t limit;
  std::uint64_t left;
};
std::optional<InGroups> in_groups(const LimitSource &limits, const events::DeviceFacts &device) {
  const std::string folder = limits.state_folder();
  const std::vector<GroupAsked> groups = limits.groups();
  std::vector<std::string> trees;
  for (const GroupAsked &group : groups) {
    if (group.kind == ledger::GroupKind::kTree) {
      trees.push_back(group.name);
    }
  }
  std::optional<InGroups> least;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ledger::GroupDevice held = ledger::read_group_device(folder, groups[i].kind, groups[i].name, device.uuid)
                                         .value_or(ledger::GroupDevice{device.uuid});
    const std::uint64_t limit = std::min(held.limit, limits.group_limit_on(i, device).value_or(ledger::kNoLimit));
    if (limit != ledger::kNoLimit) {
      const std::uint64_t promised = groups[i].kind == ledger::GroupKind::kNamed
                                         ? ledger::left_of_guarantee(folder, groups[i].name, trees, device.uuid)
                                         : 0;
      const std::uint64_t left = minus_or_zero(limit, held.claimed) + promised;
      least = least ? InGroups{std::min(least->limit, limit), std::min(least->left, left)} : InGroups{limit, left};
    }
  }
  return least;
}

// bytes * part / whole, rounded down; 0 if `whole` is 0.
std::uint64_t part_of(std::uint64_t bytes, std::uint64_t part, std::uint64_t whole) {
  __extension__ using Product = unsigned __int128;
  return whole == 0 ? 0 : static_cast<std::uint64_t>(Product{bytes} * part / whole);
}

}  // namespace

void MemoryFigures::show(std::optional<std::uint64_t> limit, std::uint64_t free_bytes) {
  if (limit && *limit <= total) {
    total = *limit;
    reserved = 0;
  }
  free = std::min(free_bytes, minus_or_zero(total, reserved));
}

void ProcessShares::add(unsigned pid, std::uint64_t bytes) {
  if (bytes == kNotAvailable) {
    return;
  }
  std::uint64_t &in_list = of_list_[pid];  // a process has one row for each instance of a partitioned device
  in_list += bytes;
  processes_[pid].held = std::max(processes_[pid].held, in_list);
}

void ProcessShares::fit(const MemoryFigures &figures, unsigned own_pid) {
  const std::uint64_t used = figures.used();
  std::uint64_t own = 0;
  std::uint64_t others = 0;
  for (auto &[pid, process] : processes_) {
    if (pid == own_pid) {
      own = std::min(used, figures.own.value_or(minus_or_zero(process.held, figures.idle)));
      process.shown = own;
    } else {
      others += process.held;
    }
  }
  for (auto &[pid, process] : processes_) {
    if (pid != own_pid) {
      process.shown = part_of(process.held, std::min(used - own, others), others);
    }
  }
}

std::uint64_t ProcessShares::shown(unsigned pid, std::uint64_t bytes) const {
  const auto found = processes_.find(pid);
  return bytes == kNotAvailable || found == processes_.end() ? bytes
                                                             : part_of(bytes, found->second.shown, found->second.held);
}

// The prefix is not compared, because the driver prints "GPU-" before the UUID of a MIG device too.
bool same_uuid(std::string_view a, std::string_view b) {
  const ledger::WideValue key = ledger::device_key(a, 0);
  const ledger::WideValue other = ledger::device_key(b, 1);  // another ordinal, so that texts without UUID differ
  return a.size() == kUuidLength && b.size() == kUuidLength && key.low == other.low && key.high == other.high;
}

Presented present_before_cuda(const LimitSource &limits, const events::DeviceFacts &device, bool show_limit,
                              MemoryFigures &memory) {
  const DeviceLimit own = limits.limit_on(device);
  const std::optional<InGroups> groups = in_groups(limits, device);
  if (!own.asked && !groups) {
    return Presented::untouched;
  }
  const std::uint64_t limit = std::min(own.asked ? own.bytes : UINT64_MAX, groups ? groups->limit : UINT64_MAX);
  const std::uint64_t obtainable = std::min({memory.free, own.bytes, groups ? groups->left : own.bytes});
  memory.show(show_limit ? std::optional(limit) : std::nullopt, obtainable);
  return Presented::yes;
}

}  // namespace ration::policy
