// The text of a log's file: plain, or compressed with zstd or gzip, as its first byte shows. Layer: logs.
// Threads: none of its own. Owns: the file. Memory: a frame's window, of at most 128 MiB.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>

namespace ration::logs {

class LogInput {
 public:
  // Opens a file or a pipe; "-" is standard input. If it cannot be opened, problem() says why.
  explicit LogInput(const std::string &name);
  ~LogInput();
  LogInput(const LogInput &) = delete;
  LogInput &operator=(const LogInput &) = delete;

  std::istream &text() { return *text_; }
  [[nodiscard]] bool is_compressed() const { return frames_ != nullptr; }
  // The number of bytes read from the compressed file so far.
  [[nodiscard]] std::uint64_t compressed_bytes() const;
  // Why there is no text or no more text; empty if the text ended normally.
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
