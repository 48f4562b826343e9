// One step of a test against a pool. Random tests draw commands; fuzzers read them from bytes.
#pragma once

#include <cstdint>
#include <ostream>

namespace ration::pool {

struct Command {
  // "Anything": an address at, in, next to or far from a live or retired block.
  enum class Kind {
    kAllocate,         // number: bytes
    kAllocateLargest,  // number: granules below the largest hole, or above it from kMore on
    kFree,             // number: the live block, counted from the newest
    kRetire,           // likewise
    kReclaim,          // number: the retired block, by address; an upstream makes its own choice
    kFreeAnything,
    kRetireAnything,
    kReclaimAnything,
    kFindAnything,
    kListLive,
    kAddSlab,        // number: bytes; not adjacent to other slabs
    kAddSlabBeside,  // at, in or adjacent to an existing slab
    kRemoveSlab,     // number: the slab, by address
    kListSlabs,
    kFreeSlab,  // find an empty slab
    kReserve,   // number: blocks
    kGiveBack,  // only with an upstream, like kBecomeClean
    kBecomeClean
  };
  static constexpr std::uint64_t kMore = 60;
  Kind kind;
  std::uint64_t number;
};
inline constexpr Command::Kind kLastKind = Command::Kind::kBecomeClean;

inline std::ostream &operator<<(std::ostream &out, const Command &command) {
  return out << '{' << static_cast<int>(command.kind) << ", " << command.number << '}';
}

}  // namespace ration::pool
