// Generators of random commands for rapidcheck.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "command.h"

namespace ration::pool {

// The relative frequency of each kind.
using Weights = std::vector<std::pair<std::size_t, Command::Kind>>;

// Generates commands with block sizes from `size` and slab sizes from `slab_size`.
inline rc::Gen<std::vector<Command>> gen_commands(int most, const Weights &weights, const rc::Gen<std::uint64_t> &size,
                                                  const rc::Gen<std::uint64_t> &slab_size) {
  using enum Command::Kind;
  const auto any = rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
  const auto few = rc::gen::inRange<std::uint64_t>(0, 2 * Command::kMore);
  std::vector<Command::Kind> kinds;
  for (const auto &[weight, kind] : weights) kinds.insert(kinds.end(), weight, kind);
  const auto command = rc::gen::mapcat(rc::gen::elementOf(kinds), [=](Command::Kind kind) {
    const auto with = [kind](std::uint64_t number) { return Command{kind, number}; };
    if (kind == kAllocate) return rc::gen::map(size, with);
    if (kind == kAddSlab) return rc::gen::map(slab_size, with);
    return rc::gen::map(kind == kAllocateLargest ? few : any, with);
  });
  // The list has variable length, so that a failure shrinks to the relevant commands.
  return rc::gen::withSize([=](int percent) {
    return rc::gen::resize(most * percent / 100,
                           rc::gen::container<std::vector<Command>>(rc::gen::resize(100, command)));
  });
}

// A value from 1 << order up to twice that, for any order below `orders`.
inline rc::Gen<std::uint64_t> gen_of_order(int orders) {
  return rc::gen::map(rc::gen::tuple(rc::gen::inRange(0, orders), rc::gen::arbitrary<std::uint64_t>()),
                      [](const auto &pair) {
                        const auto [order, noise] = pair;
                        return (std::uint64_t{1} << order) + noise % (std::uint64_t{1} << order);
                      });
}

}  // namespace ration::pool
