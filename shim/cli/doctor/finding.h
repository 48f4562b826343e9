// A finding of `ration doctor`: a row of findings.inc, and a sentence that describes what was seen. Layer: cli.
// Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ration::cli::doctor {

enum class Severity { kOk, kNote, kTrouble };

enum class Check {
#define RATION_FINDING(id, severity, meaning, remedy) id,
#include "cli/doctor/findings.inc"
#undef RATION_FINDING
};

struct Finding {
  Check check;
  std::string what;
  std::string remedy;  // empty: use the remedy in the table
};
using Findings = std::vector<Finding>;

std::string_view id_of(const Finding &finding);
Severity severity_of(const Finding &finding);
std::string_view remedy_of(const Finding &finding);

// Puts trouble first, then notes, and keeps the order of findings of the same severity.
void sort_by_severity(Findings &findings);
std::size_t count_of(const Findings &findings, Severity severity);

// Each finding as lines wrapped to `width`, then one line with the counts.
std::vector<std::string> findings_text(const Findings &findings, std::size_t width);
// One object, schema ration.doctor/1 (README.md).
std::string findings_json(const Findings &findings);

}  // namespace ration::cli::doctor
