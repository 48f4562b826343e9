// The destination of a verb's output: a file, or standard output. Layer: logs. Owns: the file until it is complete.
#pragma once

#include <fstream>
#include <optional>
#include <ostream>
#include <string>

namespace ration::logs {

// Writes to a temporary file in the same folder and renames it when it is complete, so that an error leaves the old
// file.
class OutputFile {
 public:
  // nullopt: standard output.
  explicit OutputFile(const std::optional<std::string> &path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  std::ostream &stream();
  // Call after the last write. False: the output failed, perhaps from the beginning; problem() says why.
  bool commit();
  const std::string &problem() const { return problem_; }

 private:
  std::string path_;       // with links resolved; empty: standard output
  std::string temporary_;  // empty: none, for example because a device or a pipe is written directly
  std::ofstream file_;
  std::string problem_;
};

}  // namespace ration::logs
