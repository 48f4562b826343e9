#include "tests/oracle/stamp.h"

#include <algorithm>
#include <atomic>

#include "simcuda/simcuda.h"

namespace oracle {
namespace {

constexpr size_t kOrderedBytes = 64 << 10;   // what a memset marks at most
constexpr size_t kEnd = 1024;                // bytes that are marked at each end
constexpr size_t kBetween = 7;               // and words between them
constexpr std::uint32_t kStep = 0x9e3779b1;  // neighbouring marks differ in many bits

std::atomic<std::uint32_t> marks{1};

template <class Visit>
void visit(const Block &block, Visit visit_word) {
  auto *words = static_cast<std::uint32_t *>(simcuda_host_view(block.address));
  if (words == nullptr) return;
  const size_t count = block.marked / sizeof *words;
  const size_t end = std::min(count, kEnd / sizeof *words);
  for (size_t i = 0; i < end; ++i) {
    visit_word(words[i]);
    visit_word(words[count - 1 - i]);
  }
  for (size_t i = 1; i <= kBetween; ++i) visit_word(words[count / (kBetween + 1) * i]);
}

}  // namespace

std::uint32_t new_mark(Block &block) {
  block.owners.push_back(marks++ * kStep);
  return block.owners.back();
}

void stamp(Block &block) {
  const std::uint32_t mark = new_mark(block);
  block.marked = block.bytes;
  if (block.bytes >= sizeof mark) visit(block, [mark](std::uint32_t &word) { word = mark; });
  block.readable = true;
}

CUresult stamp_in_order(Block &block, CUstream stream) {
  const std::uint32_t mark = new_mark(block);
  if (block.marked == 0) block.marked = std::min(block.bytes, kOrderedBytes);
  block.used_in.emplace_back(stream);
  return cuMemsetD32Async(block.address, mark, std::min(block.bytes, kOrderedBytes) / sizeof mark, stream);
}

bool intact(const Block &block) {
  if (!block.readable || block.marked < sizeof(std::uint32_t)) return true;
  bool own = true;
  visit(block, [&](std::uint32_t &word) {
    own = own && std::find(block.owners.begin(), block.owners.end(), word) != block.owners.end();
  });
  return own;
}

}  // namespace oracle
