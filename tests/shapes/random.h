// Random numbers that depend only on the seed. The distributions of <random> may differ between machines.
// Layer: test shapes (standard library only). Threads: none of its own.
#pragma once

#include <cmath>
#include <cstdint>

namespace ration::shapes {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  // Both ends included. REQUIRES: low <= high. The bias of the remainder is below 2^-32 for the ranges used here.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + next() % (high - low + 1); }
  bool one_in(std::uint64_t chances) { return next() % chances == 0; }
  // [0, 1)
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Numbers from `low` on; every octave is equally likely. Uses only operations that IEEE 754 rounds exactly, because
  // exp2() in two C libraries may differ in the last bit.
  std::uint64_t log_uniform(std::uint64_t low, unsigned octaves) {
    const double exponent = fraction() * octaves;
    const auto whole = static_cast<unsigned>(exponent);
    double rest = exponent - whole;
    double factor = 1;
    double root = 2;
    for (int bit = 0; bit < 32; ++bit) {
      root = std::sqrt(root);
      rest *= 2;
      if (rest < 1) continue;
      rest -= 1;
      factor *= root;
    }
    return static_cast<std::uint64_t>(static_cast<double>(low << whole) * factor);
  }

 private:
  std::uint64_t state_;
};

}  // namespace ration::shapes
