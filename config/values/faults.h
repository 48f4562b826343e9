// Rules for refusing allocations on purpose (RATION_FAIL): separated by `;`, with conditions separated by `,`.
// Layer: config, a leaf. Threads: values.
//
// above=SIZE, library=NAME and after=DURATION select the requests that a rule applies to: larger requests; requests
// from a library whose file name contains NAME; requests after this much time. A request must meet all the given
// conditions. nth=N, every=N and probability=P choose which of these requests are refused: the N-th, every N-th, or
// each with this probability, drawn with seed=N (default 0). Without one of these three, all of them are refused.
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

// Returns at least one rule, or one sentence with the error.
std::variant<std::vector<Fault>, std::string> parse_faults(std::string_view text);

}  // namespace ration::config
