// Operations that allocate: plain, pitched and managed memory, arrays, by name and by look-up.
#include <string>

#include "tests/oracle/operations.h"
#include "tests/oracle/program.h"
#include "tests/oracle/stamp.h"

namespace oracle {
namespace {

constexpr CUdeviceptr kBefore = 0x5a5a'5a5a'5a5a'5a5a;

template <class Function>
Function *looked_up(const char *name, int version) {
  void *found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (cuGetProcAddress_v2(name, &found, version, 0, &status) != CUDA_SUCCESS) return nullptr;
  return reinterpret_cast<Function *>(found);
}

std::string taken(Block *block, CUresult code, CUdeviceptr address, size_t bytes, Kind kind) {
  if (code != CUDA_SUCCESS) return code_text(code) + (address == kBefore ? ":=" : address == 0 ? "" : ":touched");
  block->life = Life::kLive;
  block->kind = kind;
  block->address = address;
  block->bytes = bytes;
  block->context = current_context();
  stamp(*block);
  return "0";
}

// The 32-bit function of CUDA 2.0.
CUresult allocate_of_old(CUdeviceptr *address, size_t bytes) {
  auto *allocate = looked_up<decltype(cuMemAlloc)>("cuMemAlloc", 2000);
  if (allocate == nullptr) return CUDA_ERROR_NOT_FOUND;
  constexpr auto kBeforeOfOld = static_cast<CUdeviceptr_v1>(kBefore);
  CUdeviceptr_v1 found = kBeforeOfOld;
  const CUresult code = allocate(&found, static_cast<unsigned>(bytes));
  if (found != kBeforeOfOld) *address = found;
  return code;
}

CUresult allocate_by(const std::string &api, CUdeviceptr *address, size_t bytes) {
  if (api == "old") return allocate_of_old(address, bytes);
  if (api != "looked_up") return cuMemAlloc_v2(address, bytes);
  auto *allocate = looked_up<decltype(cuMemAlloc_v2)>("cuMemAlloc", 12000);
  return allocate == nullptr ? CUDA_ERROR_NOT_FOUND : allocate(address, bytes);
}

std::string allocate(const Words &words) {
  Block *block = unused_block(words, 0);
  if (block == nullptr) return kSkipped;
  CUdeviceptr address = kBefore;
  const size_t bytes = size_word(words, 1);
  const CUresult code = allocate_by(word(words, 2), &address, bytes);
  return taken(block, code, address, bytes, Kind::kPlain);
}

std::string pitched(const Words &words) {
  Block *block = unused_block(words, 0);
  if (block == nullptr) return kSkipped;
  CUdeviceptr address = kBefore;
  size_t pitch = 0;
  const size_t height = size_word(words, 2);
  const CUresult code = cuMemAllocPitch_v2(&address, &pitch, size_word(words, 1), height, 4);
  const std::string answer = taken(block, code, address, pitch * height, Kind::kPlain);
  return code == CUDA_SUCCESS ? answer + ":" + std::to_string(pitch) : answer;
}

std::string managed(const Words &words) {
  Block *block = unused_block(words, 0);
  if (block == nullptr) return kSkipped;
  CUdeviceptr address = kBefore;
  const size_t bytes = size_word(words, 1);
  const CUresult code = cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL);
  return taken(block, code, address, bytes, Kind::kManaged);
}

Array *unused_array(const Words &words) {
  const int number = number_of(word(words, 0));
  if (number < 0 || number >= kMost || objects().arrays[number].life != Life::kNone) return nullptr;
  return &objects().arrays[number];
}

// Arrays of floats.
std::string make_array(const Words &words, bool mipmapped) {
  Array *array = unused_array(words);
  if (array == nullptr) return kSkipped;
  const CUDA_ARRAY3D_DESCRIPTOR shape = {size_word(words, 1), size_word(words, 2), 0, CU_AD_FORMAT_FLOAT, 1, 0};
  const CUresult code = mipmapped
                            ? cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray *>(&array->handle), &shape, 3)
                            : cuArray3DCreate_v2(reinterpret_cast<CUarray *>(&array->handle), &shape);
  if (code == CUDA_SUCCESS) {
    array->life = Life::kLive;
    array->mipmapped = mipmapped;
    array->context = current_context();
  }
  return code_text(code);
}

std::string plain_array(const Words &words) {
  return make_array(words, false);
}

std::string mipmapped_array(const Words &words) {
  return make_array(words, true);
}

}  // namespace

void add_allocations(Operations &all) {
  all.insert({{"alloc", allocate},
              {"pitch", pitched},
              {"managed", managed},
              {"array", plain_array},
              {"mipmapped", mipmapped_array}});
}

}  // namespace oracle
