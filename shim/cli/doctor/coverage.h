// How Ration treats each driver function that concerns memory, as text or JSON. scripts/coverage.py generates the rows
// from the catalogue, shim/hook_table.inc and shim/coverage.txt. Layer: cli. Threads: constants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ration::cli {

enum class Standing : std::uint8_t {
  kHooked,  // a hook handles the function
  kPassed,  // passed to the driver, because the function cannot exceed the limit
  kGap,     // the function can exceed the limit, or its answer is wrong
};

struct CoverageRow {
  const char *symbol;
  int since;           // CUDA version of this ABI, major * 1000 + minor * 10; 0: unknown
  const char *action;  // the effect of the function, according to the catalogue
  bool required;       // true if the catalogue requires an action; false if only a hook exists
  Standing standing;
  const char *family;  // the hook's family
  const char *sentence;
  const char *tests;  // the names of the tests that prove it, separated by blanks
};

std::span<const CoverageRow> coverage_rows();

// Counts the rows that the catalogue requires.
struct CoverageCounts {
  std::size_t covered = 0, of = 0, gaps = 0;
};
CoverageCounts coverage_counts(std::span<const CoverageRow> rows);

// `covered: N of M`, `gaps: K`, an explanation of the terms and an empty line; then titles and one line for each row,
// gaps first. On a terminal each row is a paragraph instead, wrapped to `width`.
std::vector<std::string> coverage_text(std::span<const CoverageRow> rows, std::size_t width);
// One object, schema ration.coverage/1. Rows that the catalogue does not require are listed separately.
std::string coverage_json(std::span<const CoverageRow> rows);

}  // namespace ration::cli
