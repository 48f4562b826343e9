// Any bytes as a file of settings: an error in words and in its place, or statements that can be read. The entry that
// libFuzzer knows; run_corpus.cc calls it with files.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "config/settings_file.h"
#include "config/surroundings.h"
#include "config/wording.h"

using namespace ration::config;

namespace {

constexpr std::size_t kLongestLine = 4096;

// What the reader promises; what is wrong, or null.
const char *wrong_with(const FileReading &reading, std::size_t lines) {
  for (const Problem &problem : reading.problems) {
    if (!is_plain(problem.line) || problem.line.empty()) return "tells what is no plain line";
    if (problem.line.size() > kLongestLine) return "tells a line that is too long";
    if (problem.line.find("/f:") != 0) return "does not tell the file";
    const unsigned long line = std::strtoul(problem.line.c_str() + 3, nullptr, 10);
    if (line == 0 || line > lines) return "tells a line that is not there";
    if (problem.fatal_for_cli && !reading.in_doubt) return "refuses, and holds nobody to it";
  }
  for (const Statement &statement : reading.statements) {
    if (statement.option == nullptr || statement.option->scope != Scope::kAnywhere) return "has no such setting";
    const std::string wrong = complain_of_statement(statement);
    if (!is_plain(wrong) || !is_plain(statement.origin.written())) return "says what is no plain line";
  }
  return nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char *>(bytes), size);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  const ProgramIdentity program{"/usr/bin/python3.11", "python3 serve.py"};
  for (const ProgramIdentity *meant : {static_cast<const ProgramIdentity *>(nullptr), &program}) {
    const FileReading reading = read_settings_text(text, "/f", Source::kSystemFile, meant);
    if (const char *wrong = wrong_with(reading, lines)) {
      std::fprintf(stderr, "the reader %s\n", wrong);
      std::abort();
    }
  }
  return 0;
}
