// Changes that a user orders while members of a group run: to the group's limit, or to a member's limit and guarantee.
// Layer: ledger. Threads: one; any process of the user.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ledger/group_view.h"

namespace ration::ledger {

// The ordered bytes on a device with `total` bytes of memory. nullopt withdraws the order, so that the limits that the
// members state, or the process's own settings, apply again. kUnchanged leaves the device as it is.
inline constexpr std::uint64_t kUnchanged = ~std::uint64_t{0};
using OrderedSize = std::function<std::optional<std::uint64_t>(const std::string &uuid, std::uint64_t total)>;

// A device on which more is guaranteed to a group's members than the limit that was ordered.
struct Guaranteed {
  std::string uuid;
  std::uint64_t bytes = 0, limit = 0;
};
// Sets the group's limit on every device that a member has seen, with immediate effect. Returns false if nothing
// changed: `refused` then names the first device on which the members' guarantees are larger, or `problem` says why.
// Design: design/groups.md#orders
bool order_group_limit(const std::string &state_folder, GroupKind kind, const std::string &name,
                       const OrderedSize &limit, std::optional<Guaranteed> &refused, std::string &problem);

// Orders a limit or a guarantee for one process, in every group that it is in, on every device that the group has seen.
// The process notices the order at its next call that concerns the limit, or at once if a thread of the library listens
// for orders. Returns false if the process is in no group or, with a `problem`, on an error.
struct MemberOrder {
  OrderedSize limit;      // empty: keeps the present limit
  OrderedSize guarantee;  // likewise
};
bool order_member(const std::string &state_folder, std::uint64_t identity, const MemberOrder &order,
                  std::string &problem);

// Tells whether the process has noticed its orders in every group, and whether it was refused an ordered guarantee.
enum class OrderState { pending, done, refused };
OrderState state_of_order(const std::string &state_folder, std::uint64_t identity);

}  // namespace ration::ledger
