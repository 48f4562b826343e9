#include "churn.h"

#include <algorithm>
#include <cmath>

namespace ration::bench {

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t Random::next() {
  std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31U);
}

std::uint32_t Random::below(std::uint32_t bound) {
  return static_cast<std::uint32_t>((next() >> 32U) * bound >> 32U);
}

std::uint32_t Random::log_uniform(std::uint32_t least, std::uint32_t most) {
  const double share = static_cast<double>(next() >> 11U) * 0x1p-53;
  return static_cast<std::uint32_t>(least * std::exp(share * std::log(static_cast<double>(most) / least)));
}

Churn draw_churn(std::uint32_t live, std::uint32_t most_bytes, std::uint64_t seed) {
  constexpr std::size_t kLeastSteps = 200'000;
  Random random(seed);
  Churn churn{};
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < live; ++i) {
    churn.first_bytes.push_back(random.log_uniform(kLeastBytes, most_bytes));
    bytes += churn.first_bytes.back();
  }
  churn.peak_bytes = bytes;
  churn.steps.resize(std::max<std::size_t>(kLeastSteps, 4 * std::size_t{live}));
  for (Churn::Step &step : churn.steps) step = {random.below(live), random.log_uniform(kLeastBytes, most_bytes)};
  // Twice: from the second time on every repetition meets the same sizes.
  std::vector<std::uint32_t> sizes = churn.first_bytes;
  for (int pass = 0; pass < 2; ++pass) {
    for (const Churn::Step &step : churn.steps) {
      bytes += step.bytes - std::uint64_t{sizes[step.victim]};
      sizes[step.victim] = step.bytes;
      churn.peak_bytes = std::max(churn.peak_bytes, bytes);
    }
  }
  return churn;
}

}  // namespace ration::bench
