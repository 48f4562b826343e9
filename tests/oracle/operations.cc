#include "tests/oracle/operations.h"

#include <cstdlib>

#include "tests/oracle/program.h"

namespace oracle {

size_t size_word(const Words &words, size_t index) {
  return std::strtoull(word(words, index).c_str(), nullptr, 10);
}

std::string code_text(CUresult code) {
  return std::to_string(static_cast<int>(code));
}

Block *live_block(const Words &words, size_t index) {
  const int number = number_of(word(words, index));
  if (number < 0 || number >= kMost) return nullptr;
  Block &block = objects().blocks[number];
  return block.life == Life::kLive ? &block : nullptr;
}

Block *unused_block(const Words &words, size_t index) {
  const int number = number_of(word(words, index));
  if (number < 0 || number >= kMost) return nullptr;
  Block &block = objects().blocks[number];
  if (block.life == Life::kDead && objects().numbers_return) block = {};
  return block.life == Life::kNone ? &block : nullptr;
}

Context *live_context(const Words &words, size_t index) {
  const int number = number_of(word(words, index));
  if (number < 0 || number >= kMost) return nullptr;
  Context &context = objects().contexts[number];
  return context.life == Life::kLive ? &context : nullptr;
}

bool stream_word(const Words &words, size_t index, CUstream &stream) {
  const std::string name = word(words, index);
  stream = name == "legacy" ? CU_STREAM_LEGACY : name == "own" ? CU_STREAM_PER_THREAD : nullptr;
  if (name == "default" || stream != nullptr) return true;
  const int number = number_of(name);
  if (number < 0 || number >= kMost || objects().streams[number].life != Life::kLive) return false;
  stream = objects().streams[number].handle;
  return true;
}

CUdeviceptr place_word(const Block &block, const Words &words, size_t index) {
  const std::string name = word(words, index);
  if (name == "middle") return block.address + block.bytes / 2;
  if (name == "last") return block.address + block.bytes - 1;
  return name == "end" ? block.address + block.bytes : block.address;
}

}  // namespace oracle
