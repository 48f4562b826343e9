// What Ration does about each driver function that has to do with memory: rows made by scripts/coverage.py from the
// catalogue, shim/hook_table.inc and tests/coverage.txt, and shown as text or JSON. Layer: cli. Threads: constants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ration::cli {

// Met by a hook; given to the driver because nothing escapes the limit by it; something escapes.
enum class Standing : std::uint8_t { kHooked, kPassed, kGap };

struct CoverageRow {
  const char *symbol;
  int since;           // CUDA version of this ABI, major * 1000 + minor * 10; 0: not known
  const char *action;  // the catalogue's word
  bool asked;          // the catalogue has something to do here; else it is a row only because it is hooked
  Standing standing;
  const char *family;  // of the hook
  const char *sentence;
  const char *tests;  // that show it, with blanks between them
};

std::span<const CoverageRow> coverage_rows();

// Of the rows that are asked for.
struct CoverageCounts {
  std::size_t covered = 0, of = 0, gaps = 0;
};
CoverageCounts coverage_counts(std::span<const CoverageRow> rows);

// A line a row under a line of titles, then `covered: N of M` and `gaps: K`.
std::vector<std::string> coverage_text(std::span<const CoverageRow> rows);
// One object, schema ration.coverage/1; rows that are not asked for are a list of their own.
std::string coverage_json(std::span<const CoverageRow> rows);

}  // namespace ration::cli
