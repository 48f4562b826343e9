#include "cli/doctor/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/base/text_table.h"
#include "config/values/quotes.h"
#include "logs/output/json_or_null.h"

namespace ration::cli::doctor {

namespace {

using Json = nlohmann::ordered_json;

struct Row {
  std::string_view id;
  Severity severity;
  std::string_view remedy;
};

constexpr Row kTable[] = {
#define RATION_FINDING(id, severity, meaning, remedy) {#id, Severity::severity, remedy},
#include "cli/doctor/findings.inc"
#undef RATION_FINDING
};

const Row &row_of(const Finding &finding) {
  return kTable[static_cast<std::size_t>(finding.check)];
}

constexpr std::string_view kSeverities[] = {"ok", "note", "trouble"};

std::string_view word_of(Severity severity) {
  return kSeverities[static_cast<std::size_t>(severity)];
}

constexpr std::size_t kMargin = 9;  // "trouble" and two blanks

}  // namespace

std::string_view id_of(const Finding &finding) {
  return row_of(finding).id;
}

Severity severity_of(const Finding &finding) {
  return row_of(finding).severity;
}

std::string_view remedy_of(const Finding &finding) {
  return finding.remedy.empty() ? row_of(finding).remedy : std::string_view(finding.remedy);
}

void sort_by_severity(Findings &findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding &a, const Finding &b) { return severity_of(a) > severity_of(b); });
}

std::size_t count_of(const Findings &findings, Severity severity) {
  return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(),
                                                [&](const Finding &each) { return severity_of(each) == severity; }));
}

std::vector<std::string> findings_text(const Findings &findings, std::size_t width) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string &text, const std::string &first) {
    for (std::string &line : wrapped(text, width, first)) {
      lines.push_back(std::move(line));
    }
  };
  for (const Finding &finding : findings) {
    std::string margin(word_of(severity_of(finding)));
    margin.resize(kMargin, ' ');
    add(config::printable(finding.what) + " (" + std::string(id_of(finding)) + ")", margin);
    if (const std::string_view remedy = remedy_of(finding); !remedy.empty()) {
      add(config::printable(remedy), std::string(kMargin, ' ') + "-> ");
    }
  }
  const std::size_t troubles = count_of(findings, Severity::kTrouble);
  lines.push_back((troubles == 0 ? "no trouble" : counted(troubles, "trouble", "troubles")) + ", " +
                  counted(count_of(findings, Severity::kNote), "note", "notes") + ", " +
                  std::to_string(count_of(findings, Severity::kOk)) + " ok");
  return lines;
}

std::string findings_json(const Findings &findings) {
  Json document = {{"schema", "ration.doctor/1"},
                   {"troubles", count_of(findings, Severity::kTrouble)},
                   {"notes", count_of(findings, Severity::kNote)},
                   {"findings", Json::array()}};
  for (const Finding &finding : findings) {
    const std::string_view remedy = remedy_of(finding);
    document["findings"].push_back({{"id", id_of(finding)},
                                    {"severity", word_of(severity_of(finding))},
                                    {"what", finding.what},
                                    {"remedy", logs::or_null(!remedy.empty(), remedy)}});
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ration::cli::doctor
