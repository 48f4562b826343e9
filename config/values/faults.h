// Rules for refusing allocations on purpose (RATION_FAIL). Rules are separated by `;`, the conditions of a rule by `,`.
// Layer: config, a leaf. Threads: values.
//
// above=SIZE, library=NAME and after=DURATION select the requests that a rule applies to: those larger than SIZE, those
// from a library whose file name contains NAME, and those made after DURATION. A request must meet all the given
// conditions. nth=N, every=N and probability=P choose which of these requests are refused: the N-th, every N-th, or
// each with probability P, drawn with seed=N (default 0). Without one of these three, all of them are refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ration::config {

struct Fault {
  std::uint64_t above_bytes = 0;
  std::string library;
  std::chrono::milliseconds after{0};
  std::uint64_t nth = 0;
  std::uint64_t every = 0;
  double probability = 1;
  std::uint64_t seed = 0;
};

// Returns at least one rule, or one sentence that states the error.
std::variant<std::vector<Fault>, std::string> parse_faults(std::string_view text);

}  // namespace ration::config
