#include "tests/bench/pool_replay/replay.h"

#include <algorithm>
#include <ostream>

#include "logs/replay/granule_arena.h"
#include "pool/pool.h"

namespace ration::pool::replay {
namespace {

// `allocate(bytes)` and `free(address)` are the pool's; `write(block)` writes where a block is.
template <class Allocate, class Free, class Write>
std::optional<Stop> replay_on(const Trace &trace, std::ostream *placements, Allocate allocate, Free free, Write write) {
  std::vector<Address> addresses(trace.ids);
  for (std::size_t index = 0; index < trace.operations.size(); ++index) {
    const Operation &operation = trace.operations[index];
    if (operation.is_free) {
      (void)free(addresses[operation.id]);
      if (placements != nullptr) *placements << "f " << trace.name_of(operation.id) << '\n';
      continue;
    }
    const AllocateOutcome outcome = allocate(operation.bytes, index);
    if (!outcome) return Stop{index + 1, operation.bytes, outcome.largest_free};
    addresses[operation.id] = outcome.block.address;
    if (placements == nullptr) continue;
    *placements << "a " << trace.name_of(operation.id);
    write(outcome.block);
    *placements << '\n';
  }
  return std::nullopt;
}

std::optional<Stop> replay_on_slab(const Trace &trace, std::uint64_t arena_bytes, std::ostream *placements) {
  Pool pool;
  // In an arena too small for a granule the first allocation fails, and that is reported.
  (void)pool.add_slab({kArenaAddress, arena_bytes, 0});
  return replay_on(
      trace, placements, [&](std::uint64_t bytes, std::size_t) { return pool.allocate(bytes); },
      [&](Address address) { return pool.free(address); },
      [&](const Block &block) { *placements << ' ' << block.address - kArenaAddress << ' ' << block.requested; });
}

std::uint64_t count(const DriverCalls &calls) {
  return calls.create + calls.release + calls.map + calls.unmap;
}

std::optional<Stop> replay_on_granules(const Trace &trace, std::uint64_t arena_bytes, std::ostream *placements,
                                       Driver *driver) {
  GranuleArena arena(arena_bytes);
  SharedPool pool;
  arena.preallocate(pool);
  const DriverCalls before = arena.calls();
  std::size_t last_operation = 0;
  const std::optional<Stop> stop = replay_on(
      trace, placements,
      [&](std::uint64_t bytes, std::size_t index) {
        const std::uint64_t calls = count(arena.calls());
        const AllocateOutcome outcome = pool.allocate(bytes, arena);
        if (count(arena.calls()) != calls) last_operation = index + 1;
        return outcome;
      },
      [&](Address address) { return pool.free(address); },
      [&](const Block &block) {
        *placements << ' ' << block.requested;
        arena.write_pages(*placements, pool, block);
      });
  if (driver != nullptr) {
    const DriverCalls now = arena.calls();
    const stitch::Stitcher::Counts counts = pool.stitch_counts();
    *driver = {.preallocation = before,
               .requests = {now.create - before.create, now.release - before.release, now.map - before.map,
                            now.access - before.access, now.unmap - before.unmap, now.us - before.us},
               .last_operation = last_operation,
               .stitched = counts.stitched,
               .revived = counts.revived};
  }
  return stop;
}

bool fits(const Trace &trace, std::uint64_t arena_bytes, Backing backing) {
  return !replay(trace, arena_bytes, backing);
}

// Granules are whole pages. Which blocks share one is a matter of luck, so that a slightly smaller arena may do where
// one does not: two more are tried. `middle` is then the one that fits.
bool fits_about(const Trace &trace, std::uint64_t &middle, std::uint64_t least, Backing backing) {
  if (backing == Backing::slab) return fits(trace, middle, backing);
  const std::uint64_t step = std::max(middle / 4000, GranuleArena::kPageBytes);
  for (int i = 0; i < 3 && middle >= least; ++i) {
    if (fits(trace, middle, backing)) return true;
    if (middle < step) return false;
    middle -= step;
  }
  return false;
}

}  // namespace

std::optional<Stop> replay(const Trace &trace, std::uint64_t arena_bytes, Backing backing, std::ostream *placements,
                           Driver *driver) {
  return backing == Backing::slab ? replay_on_slab(trace, arena_bytes, placements)
                                  : replay_on_granules(trace, arena_bytes, placements, driver);
}

std::uint64_t find_minimum(const Trace &trace, Backing backing) {
  // No allocator fits into less than the peak. Fitting is not monotonic, so the bisection finds one of several edges;
  // `fitting` has always been replayed.
  const std::uint64_t overhead = backing == Backing::slab ? 2 * kUnitBytes : 2 * GranuleArena::kPageBytes;
  std::uint64_t failing = trace.peak_bytes - 1;
  std::uint64_t fitting = std::min(trace.peak_bytes + trace.peak_bytes / 32 + overhead, kMaximumBytes);
  while (!fits(trace, fitting, backing)) {
    if (fitting == kMaximumBytes) throw TraceError("the trace fits into no arena of any size");
    failing = fitting;
    fitting = std::min(fitting + fitting / 8, kMaximumBytes);
  }
  while (fitting > failing && fitting - failing > std::max(fitting / 2000, std::uint64_t{1})) {
    const std::uint64_t middle = failing + (fitting - failing) / 2;
    std::uint64_t fits_at = middle;
    if (fits_about(trace, fits_at, trace.peak_bytes, backing)) {
      fitting = fits_at;
    } else {
      failing = middle;
    }
  }
  return backing == Backing::slab ? fitting : fitting / GranuleArena::kPageBytes * GranuleArena::kPageBytes;
}

}  // namespace ration::pool::replay
