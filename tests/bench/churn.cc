#include "churn.h"

#include <algorithm>
#include <cmath>

namespace ration::bench {

std::uint32_t Random::below(std::uint32_t bound) {
  return static_cast<std::uint32_t>((next() >> 32U) * bound >> 32U);
}

std::uint32_t Random::log_uniform(std::uint32_t least, std::uint32_t most) {
  return static_cast<std::uint32_t>(least * std::exp(fraction() * std::log(static_cast<double>(most) / least)));
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
  // Twice: from the second pass on all repetitions have the same sizes.
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
