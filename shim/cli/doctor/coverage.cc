#include "cli/doctor/coverage.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/base/text_table.h"
#include "logs/output/json_or_null.h"

namespace ration::cli {

namespace {

using nlohmann::json;

constexpr CoverageRow kRows[] = {
#include "coverage_rows.inc"
};

constexpr const char *kLegend[] = {
    "hooked: Ration handles it. passed on: it goes to the driver, because it cannot exceed the limit. GAP: it can "
    "exceed the limit, or its answer is wrong. Gaps come first.",
    "POOL allocates or frees memory. COUNT takes, gives back or reports memory. VIRT reports memory, or ends a "
    "context. "
    "XLATE shares memory. WATCH decides how memory is used. WRAP hands out functions. PASS needs nothing.",
};

std::string version_text(int since) {
  return since == 0 ? "-" : std::to_string(since / 1000) + "." + std::to_string(since % 1000 / 10);
}

std::string standing_text(const CoverageRow &row) {
  return row.standing == Standing::kHooked   ? "hooked (" + std::string(row.family) + ")"
         : row.standing == Standing::kPassed ? "passed on"
                                             : "GAP";
}

const char *name_of(Standing standing) {
  return standing == Standing::kHooked ? "hooked" : standing == Standing::kPassed ? "passed" : "gap";
}

json as_json(const CoverageRow &row) {
  json tests = json::array();
  std::istringstream words(row.tests);
  for (std::string test; words >> test;) {
    tests.push_back(test);
  }
  return {{"export", row.symbol},
          {"since", logs::or_null(row.since != 0, row.since)},
          {"action", row.action},
          {"handling", name_of(row.standing)},
          {"family", logs::or_null(*row.family != '\0', row.family)},
          {"sentence", row.sentence},
          {"tests", std::move(tests)}};
}

void add_paragraph(const CoverageRow &row, std::size_t width, std::vector<std::string> &lines) {
  lines.emplace_back(row.symbol);
  const auto add = [&](const std::string &text) {
    for (std::string &line : wrapped(text, width, "  ")) {
      lines.push_back(std::move(line));
    }
  };
  add((row.since == 0 ? "" : "since CUDA " + version_text(row.since) + ", ") + row.action + ", " + standing_text(row) +
      ": " + row.sentence);
  if (*row.tests != '\0') {
    add("Tests: " + std::string(row.tests));
  }
}

}  // namespace

std::span<const CoverageRow> coverage_rows() {
  return kRows;
}

CoverageCounts coverage_counts(std::span<const CoverageRow> rows) {
  CoverageCounts counts;
  for (const CoverageRow &row : rows) {
    if (row.required) {
      ++counts.of;
      ++(row.standing == Standing::kGap ? counts.gaps : counts.covered);
    }
  }
  return counts;
}

std::vector<std::string> coverage_text(std::span<const CoverageRow> rows, std::size_t width) {
  static const std::vector<Column> kColumns = {{"EXPORT", Align::kLeft}, {"SINCE"},
                                               {"ACTION", Align::kLeft}, {"RATION", Align::kLeft},
                                               {"TESTS", Align::kLeft},  {"WHAT THAT MEANS", Align::kLeft}};
  const CoverageCounts counts = coverage_counts(rows);
  std::vector<std::string> lines = {"covered: " + std::to_string(counts.covered) + " of " + std::to_string(counts.of),
                                    "gaps: " + std::to_string(counts.gaps)};
  for (const char *each : kLegend) {
    for (std::string &line : wrapped(each, width)) {
      lines.push_back(std::move(line));
    }
  }
  lines.emplace_back();
  std::vector<CoverageRow> sorted(rows.begin(), rows.end());
  std::stable_partition(sorted.begin(), sorted.end(),
                        [](const CoverageRow &row) { return row.standing == Standing::kGap; });
  if (width != kUnlimitedWidth) {
    for (const CoverageRow &row : sorted) {
      add_paragraph(row, width, lines);
    }
    return lines;
  }
  std::vector<std::vector<std::string>> cells;
  for (const CoverageRow &row : sorted) {
    cells.push_back({row.symbol, version_text(row.since), row.action, standing_text(row),
                     *row.tests == '\0' ? "-" : row.tests, row.sentence});
  }
  const std::vector<std::string> table = table_lines(kColumns, cells, kUnlimitedWidth);
  lines.insert(lines.end(), table.begin(), table.end());
  return lines;
}

std::string coverage_json(std::span<const CoverageRow> rows) {
  const CoverageCounts counts = coverage_counts(rows);
  json document = {{"schema", "ration.coverage/1"}, {"covered", counts.covered}, {"of", counts.of},
                   {"gaps", counts.gaps},           {"rows", json::array()},     {"also_hooked", json::array()}};
  for (const CoverageRow &row : rows) {
    document[row.required ? "rows" : "also_hooked"].push_back(as_json(row));
  }
  return document.dump(2);
}

}  // namespace ration::cli
