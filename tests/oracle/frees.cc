// Operations that free, rightly and wrongly.
#include "tests/oracle/operations.h"
#include "tests/oracle/program.h"
#include "tests/oracle/stamp.h"

namespace oracle {
namespace {

constexpr CUdeviceptr kForeign = 0xdead000;

std::string ended(Block *block, CUresult code, bool whole) {
  if (code == CUDA_SUCCESS) block->life = Life::kDead;
  return code_text(code) + (whole ? "" : "!");
}

// Freeing memory of a pool, and freeing in a stream, wait for no other stream's work: a program that leaves some on the
// block would destroy its own data.
std::string free_block(const Words &words) {
  Block *block = live_block(words, 0);
  if (block == nullptr || block->kind == Kind::kMapped) return kSkipped;
  if (block->kind == Kind::kOrdered && !unused(*block)) return kSkipped;
  const bool whole = intact(*block);
  return ended(block, cuMemFree_v2(block->address), whole);
}

std::string free_in_order(const Words &words) {
  Block *block = live_block(words, 0);
  CUstream stream = nullptr;
  if (block == nullptr || block->kind == Kind::kMapped || !stream_word(words, 1, stream)) return kSkipped;
  if (!used_only_in(*block, Queue(stream))) return kSkipped;
  const bool whole = intact(*block);
  return ended(block, cuMemFreeAsync(block->address, stream), whole);
}

std::string end_array(const Words &words) {
  const int number = number_of(word(words, 0));
  if (number < 0 || number >= kMost || objects().arrays[number].life != Life::kLive) return kSkipped;
  Array &array = objects().arrays[number];
  const CUresult code = array.mipmapped ? cuMipmappedArrayDestroy(static_cast<CUmipmappedArray>(array.handle))
                                        : cuArrayDestroy(static_cast<CUarray>(array.handle));
  if (code == CUDA_SUCCESS) array.life = Life::kDead;
  return code_text(code);
}

CUresult free_by(const Words &words, size_t index, CUdeviceptr address) {
  CUstream stream = nullptr;
  return stream_word(words, index, stream) ? cuMemFreeAsync(address, stream) : cuMemFree_v2(address);
}

std::string free_inside(const Words &words) {
  const Block *block = live_block(words, 0);
  if (block == nullptr || block->bytes < 2) return kSkipped;
  return code_text(free_by(words, 2, block->address + size_word(words, 1) % (block->bytes - 1) + 1));
}

// The memory may have a new owner.
std::string free_again(const Words &words) {
  const int number = number_of(word(words, 0));
  if (number < 0 || number >= kMost || objects().blocks[number].life != Life::kDead) return kSkipped;
  const CUdeviceptr address = objects().blocks[number].address;
  if (is_of_another(objects().blocks[number], address)) return kIncomparable;
  return code_text(free_by(words, 1, address));
}

std::string free_null(const Words &words) {
  return code_text(free_by(words, 0, 0));
}

std::string free_foreign(const Words &words) {
  return code_text(free_by(words, 0, kForeign));
}

}  // namespace

void add_frees(Operations &all) {
  all.insert({{"free", free_block},
              {"free_async", free_in_order},
              {"end_array", end_array},
              {"free_inside", free_inside},
              {"free_again", free_again},
              {"free_null", free_null},
              {"free_foreign", free_foreign}});
}

}  // namespace oracle
