// What a test does to a pool: one step. Random tests draw commands, fuzzers read them from bytes.
#pragma once

#include <cstdint>
#include <ostream>

namespace ration::pool {

struct Command {
  // "Anything": at, in, beside or far from a block, live or retired.
  enum class Kind {
    kAllocate,         // number: bytes
    kAllocateLargest,  // number: granules less than the largest hole; from kMore on: more
    kFree,             // number: which live block, counted from the newest
    kRetire,           // likewise
    kReclaim,          // number: which retired block, by address; an upstream's own choice where there is one
    kFreeAnything,
    kRetireAnything,
    kReclaimAnything,
    kFindAnything,
    kListLive,
    kAddSlab,        // number: bytes; its place is one of its own
    kAddSlabBeside,  // at, in or touching one that is there
    kRemoveSlab,     // number: which, by address
    kListSlabs,
    kFreeSlab,  // which slab is wholly free
    kReserve,   // number: blocks
    kGiveBack,  // only where there is an upstream; so is the next
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
