// Decompresses a log, step by step. Layer: logs. Threads: none of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace ration::logs {

struct Packed {
  char *data = nullptr;
  std::size_t size = 0, at = 0;
};

// The output of one decoding step, and whether the step ended inside a frame, whose end must still follow.
struct Step {
  std::size_t written = 0;
  bool is_in_frame = false;
  std::string problem;
};

class Decoder {
 public:
  Decoder() = default;
  virtual ~Decoder() = default;
  Decoder(const Decoder &) = delete;
  Decoder &operator=(const Decoder &) = delete;
  virtual Step step(Packed &in, std::vector<char> &out) = 0;
};

// Chooses the decoder by the first byte of a file; nullptr: the file is not compressed.
std::unique_ptr<Decoder> decoder_for(int first_byte);

}  // namespace ration::logs
