// How a program coped when its allocations were refused one at a time, as a table and as JSON. Layer: cli. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/find/repeated_run.h"

namespace ration::cli {

enum class Survival {
  kOk,       // exit status 0
  kDiffers,  // exit status 0, but different output
  kError,    // another exit status
  kCrash,    // ended by a signal
  kHang,     // took too long
};

struct RefusedCall {
  std::string api;  // the refused function, in the first process that made `nth` calls
  std::uint64_t bytes = 0;
  std::uint64_t device = 0;
};

struct FaultRun {
  std::uint64_t nth;
  RefusedCall call;
  RunEnd end;
  Survival survival;
};

struct FaultSearch {
  std::vector<FaultRun> runs;  // only runs in which a call was refused
  bool is_cut = false;         // --first ended the search, so there may be more calls to refuse
  bool compares = false;       // output is compared too, because all runs without refusals printed the same

  const FaultRun *worst() const;  // the first crash, else the first hang; nullptr: there was none
  bool is_survived() const { return worst() == nullptr; }
};

Survival survival_of(const RunEnd &end, bool prints_the_same);

// A line for each run, then one line with the counts.
std::vector<std::string> fault_lines(const FaultSearch &search, std::size_t width);
// One object, schema ration.find_faults/1 (README.md).
std::string fault_json(const FaultSearch &search, const std::vector<std::string> &command);

}  // namespace ration::cli
