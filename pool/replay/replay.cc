#include "pool/replay/replay.h"

#include <algorithm>
#include <ostream>

#include "pool/pool.h"

namespace ration::pool::replay {
namespace {

// An arbitrary address; drivers often place the first allocation there.
constexpr Address kArenaAddress = 0x7f0000000000;

bool fits(const Trace &trace, std::uint64_t arena_bytes) {
  return !replay(trace, arena_bytes);
}

}  // namespace

std::optional<Stop> replay(const Trace &trace, std::uint64_t arena_bytes, std::ostream *placements) {
  Pool pool;
  // In an arena too small for a granule the first allocation fails, and that is reported.
  (void)pool.add_slab({kArenaAddress, arena_bytes, 0});
  std::vector<Address> addresses(trace.ids);
  for (std::size_t index = 0; index < trace.operations.size(); ++index) {
    const Operation &operation = trace.operations[index];
    if (operation.is_free) {
      (void)pool.free(addresses[operation.id]);
      if (placements != nullptr) *placements << "f " << trace.name_of(operation.id) << '\n';
      continue;
    }
    const AllocateOutcome outcome = pool.allocate(operation.bytes);
    if (!outcome) return Stop{index + 1, operation.bytes, outcome.largest_free};
    addresses[operation.id] = outcome.block.address;
    if (placements == nullptr) continue;
    *placements << "a " << trace.name_of(operation.id) << ' ' << outcome.block.address - kArenaAddress << ' '
                << operation.bytes << '\n';
  }
  return std::nullopt;
}

std::uint64_t find_minimum(const Trace &trace) {
  // No allocator fits into less than the peak. Fitting is not monotonic, so the bisection finds one of several edges;
  // `fitting` has always been replayed.
  std::uint64_t failing = trace.peak_bytes - 1;
  std::uint64_t fitting = std::min(trace.peak_bytes + trace.peak_bytes / 32 + 2 * kGranuleBytes, kMaximumBytes);
  while (!fits(trace, fitting)) {
    if (fitting == kMaximumBytes) throw TraceError("the trace fits into no arena of any size");
    failing = fitting;
    fitting = std::min(fitting + fitting / 8, kMaximumBytes);
  }
  while (fitting - failing > std::max(fitting / 2000, std::uint64_t{1})) {
    const std::uint64_t middle = failing + (fitting - failing) / 2;
    (fits(trace, middle) ? fitting : failing) = middle;
  }
  return fitting;
}

}  // namespace ration::pool::replay
