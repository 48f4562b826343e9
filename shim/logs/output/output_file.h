// The destination of a verb's output: a file, or standard output. Layer: logs. Owns: the file until it is complete.
#pragma once

#include <fstream>
#include <optional>
#include <ostream>
#include <string>

namespace ration::logs {

// Writes to a temporary file in the same folder and renames it when it is complete, so that after an error the old file
// is still there.
class OutputFile {
 public:
  // nullopt: standard output.
  explicit OutputFile(const std::optional<std::string> &path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  std::ostream &stream();
  // Call this after the last write. Returns false if the output failed at any time; problem() says why.
  bool commit();
  const std::string &problem() const { return problem_; }

 private:
  std::string path_;       // with links resolved; empty: standard output
  std::string temporary_;  // empty: not used, for example for a device or a pipe
  std::ofstream file_;
  std::string problem_;
};

}  // namespace ration::logs
