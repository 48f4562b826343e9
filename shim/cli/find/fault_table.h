// How a program coped when its allocations were refused one by one, as a table and as JSON. Layer: cli. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/find/repeated_run.h"

namespace ration::cli {

enum class Survival {
  kOk,       // exit status 0
  kDiffers,  // exit status 0, but it printed something else
  kError,    // another exit status
  kCrash,    // a signal ended it
  kHang,     // it took too long
};

struct RefusedCall {
  std::string api;  // the function of the refused call, in the first process that made `nth` calls
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
  bool is_cut = false;         // --first ended the search: there may be more calls to refuse
  bool compares = false;       // output is compared as well, because it was the same in every run without refusals

  const FaultRun *worst() const;  // the first crash, else the first hang; nullptr: there was none
  bool is_survived() const { return worst() == nullptr; }
};

Survival survival_of(const RunEnd &end, bool prints_the_same);

// A line for each run, then one line with the counts.
std::vector<std::string> fault_lines(const FaultSearch &search, std::size_t width);
// One object, schema ration.find_faults/1 (README.md).
std::string fault_json(const FaultSearch &search, const std::vector<std::string> &command);

}  // namespace ration::cli
