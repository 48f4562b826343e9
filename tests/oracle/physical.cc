// Operations on physical memory and its mappings. A mapped one is the block of the same number.
#include "tests/oracle/operations.h"
#include "tests/oracle/program.h"
#include "tests/oracle/stamp.h"

namespace oracle {
namespace {

Physical *numbered(const Words &words) {
  const int number = number_of(word(words, 0));
  return number < 0 || number >= kMost ? nullptr : &objects().physical[number];
}

std::string create(const Words &words) {
  Physical *memory = numbered(words);
  if (memory == nullptr || memory->life != Life::kNone) return kSkipped;
  memory->bytes = size_word(words, 1);
  memory->device = number_of(word(words, 2));
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, memory->device};
  const CUresult code = cuMemCreate(&memory->handle, memory->bytes, &properties, 0);
  if (code == CUDA_SUCCESS) memory->life = Life::kLive;
  return code_text(code);
}

std::string release(const Words &words) {
  Physical *memory = numbered(words);
  if (memory == nullptr || memory->life != Life::kLive) return kSkipped;
  const CUresult code = cuMemRelease(memory->handle);
  if (code == CUDA_SUCCESS) memory->life = Life::kDead;
  return code_text(code);
}

std::string map(const Words &words) {
  const Physical *memory = numbered(words);
  if (memory == nullptr || memory->life != Life::kLive) return kSkipped;
  Block *const unused = unused_block(words, 0);
  if (unused == nullptr) return kSkipped;
  Block &block = *unused;
  CUresult code = cuMemAddressReserve(&block.address, memory->bytes, 0, 0, 0);
  if (code != CUDA_SUCCESS) return code_text(code);
  code = cuMemMap(block.address, memory->bytes, 0, memory->handle, 0);
  if (code != CUDA_SUCCESS) return code_text(code) + ":map";
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, memory->device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  code = cuMemSetAccess(block.address, memory->bytes, &access, 1);
  if (code != CUDA_SUCCESS) return code_text(code) + ":access";
  block.life = Life::kLive;
  block.kind = Kind::kMapped;
  block.bytes = memory->bytes;
  stamp(block);
  return "0";
}

std::string unmap(const Words &words) {
  Block *block = live_block(words, 0);
  if (block == nullptr || block->kind != Kind::kMapped) return kSkipped;
  const CUresult code = cuMemUnmap(block->address, block->bytes);
  if (code != CUDA_SUCCESS) return code_text(code);
  block->life = Life::kDead;
  return "0:" + code_text(cuMemAddressFree(block->address, block->bytes));
}

}  // namespace

void add_physical(Operations &all) {
  all.insert({{"physical", create}, {"map", map}, {"unmap", unmap}, {"end_physical", release}});
}

}  // namespace oracle
