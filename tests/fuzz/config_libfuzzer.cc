// Any bytes as a file of settings: an error with its position, or statements that can be parsed; and as the value of
// third-party variables. The entry point of libFuzzer; run_corpus.cc calls it with files.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "config/files/settings_file.h"
#include "config/locks.h"
#include "config/settings_context.h"
#include "config/values/quotes.h"

using namespace ration::config;

namespace {

constexpr std::size_t kLongestLine = 4096;

bool is_plain(std::string_view line) {
  return printable(line) == line;
}

// Checks what the reader guarantees. Returns the error, or null.
const char *wrong_with(const FileReading &reading, std::size_t lines) {
  for (const Problem &problem : reading.problems) {
    if (!is_plain(problem.line) || problem.line.empty()) return "reports a line that is not printable";
    if (problem.line.size() > kLongestLine) return "reports a line that is too long";
    if (problem.line.find("/f:") != 0) return "does not name the file";
    const unsigned long line = std::strtoul(problem.line.c_str() + 3, nullptr, 10);
    if (line == 0 || line > lines) return "reports a line number beyond the end";
    if (problem.fatal_for_cli && !reading.in_doubt) return "refuses a limit without the strictest reading";
  }
  for (const Statement &statement : reading.statements) {
    if (statement.option == nullptr || statement.option->scope >= Scope::kVariable) return "returns an unknown setting";
    const std::string wrong = error_in_statement(statement);
    if (!is_plain(wrong) || !is_plain(statement.origin.written())) return "quotes text that is not printable";
  }
  for (const std::string &line : escapable_locks(reading, "/f", "/system")) {
    if (!is_plain(line) || line.find("/f:") != 0) return "warns in text that is not printable";
  }
  return nullptr;
}

constexpr const char *kVariables[] = {"XLA_CLIENT_MEM_FRACTION",    "XLA_PYTHON_CLIENT_ALLOCATOR",
                                      "GPU_MEMORY_LIMIT",           "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC",
                                      "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"};

const char *wrong_with_variable(const std::string &name, const std::string &value) {
  const std::string entry = name + "=" + value;
  const char *const environment[] = {entry.c_str(), nullptr};
  std::vector<Problem> problems;
  const Settings settings = read_environment(environment, problems);
  for (const Problem &problem : problems) {
    if (!is_plain(problem.line) || problem.line.size() > kLongestLine) return "reports a line that is not printable";
    if (problem.fatal_for_cli) return "stops ration run for a third-party variable";
  }
  const bool in_doubt = settings.limit_in_doubt || std::any_of(settings.groups.begin(), settings.groups.end(),
                                                               [](const auto &group) { return group.in_doubt; });
  for (const ThirdPartyVariable &word : settings.third_party) {
    const bool refused = word.disposition == Disposition::kRefused;
    if (refused != in_doubt || (refused && problems.empty())) return "refuses a limit without the strictest reading";
  }
  return nullptr;
}

void require(const char *wrong) {
  if (wrong != nullptr) {
    std::fprintf(stderr, "the reader %s\n", wrong);
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char *>(bytes), size);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  const ProgramIdentity program{"/usr/bin/python3.11", "python3 serve.py"};
  for (const ProgramIdentity *meant : {static_cast<const ProgramIdentity *>(nullptr), &program}) {
    const FileReading reading = read_settings_text(text, "/f", Source::kSystemFile, meant);
    require(wrong_with(reading, lines));
  }
  for (const char *variable : kVariables) {
    require(wrong_with_variable(variable, text.substr(0, text.find('\0'))));
  }
  return 0;
}
