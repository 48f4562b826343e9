// Which allocations are refused on purpose (RATION_FAIL): rules separated by `;`, of conditions separated by `,`.
// Layer: config, a leaf. Threads: values.
//
// above=SIZE library=NAME after=DURATION say which requests a rule looks at: larger ones, of a library whose file's
// name contains NAME, once so much time has passed; all of what is given. nth=N every=N probability=P say which of
// those it refuses: the N-th, every N-th, each with this chance, as seed=N (0) decides; without one of the three all of
// them.
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

// At least one rule, or one sentence with the error.
std::variant<std::vector<Fault>, std::string> parse_faults(std::string_view text);

}  // namespace ration::config
