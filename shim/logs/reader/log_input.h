// The text of a log's file, plain or compressed by zstd or gzip, whichever its first byte says. Layer: logs.
// Threads: none of its own. Owns: the file. Memory: a frame's window, of at most 128 MiB.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>

namespace ration::logs {

class LogInput {
 public:
  // A file, or a pipe; -: standard input. problem() says where that cannot be opened.
  explicit LogInput(const std::string &name);
  ~LogInput();
  LogInput(const LogInput &) = delete;
  LogInput &operator=(const LogInput &) = delete;

  std::istream &text() { return *text_; }
  [[nodiscard]] bool is_compressed() const { return frames_ != nullptr; }
  // Of the compressed file, taken by now.
  [[nodiscard]] std::uint64_t compressed_bytes() const;
  // Why there is no text, or no more of it; empty at the text's own end.
  [[nodiscard]] const std::string &problem() const;

 private:
  class Frames;

  std::unique_ptr<std::istream> file_;
  std::unique_ptr<Frames> frames_;
  std::unique_ptr<std::istream> decompressed_;
  std::istream *text_ = nullptr;
  std::string problem_;
};

}  // namespace ration::logs
