// What the owner of a group orders while its members run: the group's limit, or a member's limit and guarantee.
// Layer: ledger. Threads: one; any process of the user.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ledger/group_view.h"

namespace ration::ledger {

// Bytes on a device of that size; nullopt: what the members state, or the process's own settings, holds again.
using OrderedSize = std::function<std::optional<std::uint64_t>(const std::string &uuid, std::uint64_t total)>;

// The group's limit on every device that a member has seen; in force at once. False, and nothing changed: `problem`
// says why, which may be that more is guaranteed to its members.
// Design: design/groups.md#orders
bool order_group_limit(const std::string &state_folder, GroupKind kind, const std::string &name,
                       const OrderedSize &limit, std::string &problem);

// Of the process, on every device that it has seen, in every group in which it is. It takes note at its next call that
// concerns the limit, or at once where a thread of the library listens. False: it is in no group; or `problem` says
// why.
struct MemberOrder {
  OrderedSize limit;      // empty: stays
  OrderedSize guarantee;  // the same
};
bool order_member(const std::string &state_folder, std::uint64_t identity, const MemberOrder &order,
                  std::string &problem);

// Whether the process has taken note on every device, and what of it was refused.
enum class OrderState { pending, done, refused };
OrderState state_of_order(const std::string &state_folder, std::uint64_t identity);

}  // namespace ration::ledger
