// Where a verb writes what it was asked for: a file, or standard output. Layer: logs. Owns: a file that is not
// complete.
#pragma once

#include <fstream>
#include <optional>
#include <ostream>
#include <string>

namespace ration::logs {

// A file is written beside its place, and moved there when it is complete: an error leaves what was there before.
class OutputFile {
 public:
  // Nothing: standard output.
  explicit OutputFile(const std::optional<std::string> &path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  std::ostream &stream();
  // After the last write. False, and from the beginning: what problem() says.
  bool commit();
  const std::string &problem() const { return problem_; }

 private:
  std::string path_;       // with links followed; empty: standard output
  std::string temporary_;  // empty: none, as of a device or a pipe, which is written itself
  std::ofstream file_;
  std::string problem_;
};

}  // namespace ration::logs
