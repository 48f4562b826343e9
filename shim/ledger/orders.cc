#include "ledger/orders.h"

#include <algorithm>

#include "ledger/device_key.h"
#include "ledger/group_file.h"
#include "ledger/membership.h"
#include "ledger/totals.h"

namespace ration::ledger {
namespace {

GroupFile mapped_file(const std::string &state_folder, const std::string &file, std::string &problem) {
  const Descriptor folder = open_state_folder(state_folder, false, problem);
  const Descriptor descriptor = folder ? open_group_file(folder.number(), file, problem) : Descriptor();
  return descriptor ? GroupFile::map(descriptor.number(), problem) : GroupFile();
}

// `unordered` is the result if the order is withdrawn.
std::uint64_t word_of(std::optional<std::uint64_t> bytes, std::uint64_t unordered) {
  return bytes ? std::min(*bytes, kNoLimit - 1) + 1 : unordered;
}

// Calls visit(file, group, slot) for each slot of the process.
template <class Visit>
bool each_slot(const std::string &state_folder, std::uint64_t identity, std::string &problem, const Visit &visit) {
  bool found = false;
  for (const Group &group : read_groups(state_folder, problem)) {
    const bool is_in = std::any_of(group.members.begin(), group.members.end(),
                                   [&](const Member &each) { return each.identity == identity; });
    const GroupFile file = is_in ? mapped_file(state_folder, file_name(group.kind, group.name), problem) : GroupFile();
    for (std::uint32_t i = 0; file && i < file.slots(); ++i) {
      shared::Slot &slot = file.slot(i);
      if (slot.is_owned() && slot.identity.load(std::memory_order_relaxed) == identity) {
        visit(file, group, slot);
        found = true;
      }
    }
  }
  return found;
}

std::uint64_t guaranteed_on(const GroupFile &file, std::uint32_t device) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < file.slots(); ++i) {
    const shared::Slot &slot = file.slot(i);
    if (slot.is_owned()) {
      bytes += slot.cells[device].guarantee.load(std::memory_order_relaxed);
    }
  }
  return bytes;
}

bool is_seen(const shared::Device &device) {
  const WideValue key = device.uuid.load();
  return key.low != 0 || key.high != 0;
}

}  // namespace

bool order_group_limit(const std::string &state_folder, GroupKind kind, const std::string &name,
                       const OrderedSize &limit, std::optional<Guaranteed> &refused, std::string &problem) {
  const GroupFile file = mapped_file(state_folder, file_name(kind, name), problem);
  if (!file) {
    return false;
  }
  const auto wanted = [&](const shared::Device &device) {
    const std::uint64_t physical = device.physical.load(std::memory_order_relaxed);
    std::optional<std::uint64_t> bytes = limit(device_text(device.uuid.load()), physical);
    return bytes && bytes != kUnchanged && physical != 0 ? std::min(*bytes, physical) : bytes;
  };
  const auto is_concerned = [&](const shared::Device &device) {
    return is_seen(device) && wanted(device) != kUnchanged;
  };
  for (std::uint32_t i = 0; i < shared::kDevices; ++i) {
    const shared::Device &device = file.header().device[i];
    if (!is_concerned(device)) {
      continue;
    }
    const std::uint64_t bytes = wanted(device).value_or(stated_limit(file, i));
    if (const std::uint64_t guaranteed = guaranteed_on(file, i); guaranteed > bytes) {
      refused = Guaranteed{device_text(device.uuid.load()), guaranteed, bytes};
      return false;
    }
  }
  for (std::uint32_t i = 0; i < shared::kDevices; ++i) {
    shared::Device &device = file.header().device[i];
    if (is_concerned(device)) {
      device.ordered.store(word_of(wanted(device), 0), std::memory_order_release);
      recompute_limit(file, i);
    }
  }
  ring(file);
  return true;
}

bool order_member(const std::string &state_folder, std::uint64_t identity, const MemberOrder &order,
                  std::string &problem) {
  return each_slot(state_folder, identity, problem, [&](const GroupFile &file, const Group &group, shared::Slot &slot) {
    for (std::uint32_t i = 0; i < shared::kDevices; ++i) {
      const shared::Device &device = file.header().device[i];
      if (!is_seen(device)) {
        continue;
      }
      const std::string uuid = device_text(device.uuid.load());
      const std::uint64_t total = device.physical.load(std::memory_order_relaxed);
      const auto store = [&](const OrderedSize &size, std::atomic<std::uint64_t> &word) {
        if (const std::optional<std::uint64_t> bytes = size(uuid, total); bytes != kUnchanged) {
          word.store(word_of(bytes, shared::kUnordered), std::memory_order_relaxed);
        }
      };
      if (order.limit) {
        store(order.limit, slot.cells[i].ordered_limit);
      }
      if (slot.cells[i].ordered_guarantee.load(std::memory_order_relaxed) == shared::kRefused) {
        slot.cells[i].ordered_guarantee.store(0, std::memory_order_relaxed);
      }
      if (order.guarantee && group.kind == GroupKind::kNamed) {
        store(order.guarantee, slot.cells[i].ordered_guarantee);
      }
    }
    slot.orders.fetch_add(1, std::memory_order_release);
    ring(file);
  });
}

OrderState state_of_order(const std::string &state_folder, std::uint64_t identity) {
  OrderState state = OrderState::done;
  std::string problem;
  each_slot(state_folder, identity, problem, [&](const GroupFile &, const Group &, const shared::Slot &slot) {
    if (slot.heeded.load(std::memory_order_acquire) != slot.orders.load(std::memory_order_acquire)) {
      state = OrderState::pending;
    }
    for (const shared::Cell &cell : slot.cells) {
      if (state == OrderState::done && cell.ordered_guarantee.load(std::memory_order_relaxed) == shared::kRefused) {
        state = OrderState::refused;
      }
    }
  });
  return state;
}

}  // namespace ration::ledger
