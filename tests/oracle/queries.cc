// Operations that ask, and reads of memory that is no longer, or never was, the program's.
#include <cstring>

#include "tests/oracle/operations.h"
#include "tests/oracle/program.h"
#include "tests/oracle/stamp.h"

namespace oracle {
namespace {

constexpr CUdeviceptr kForeign = 0xdead000;

std::string memory(const Words &) {
  size_t free_bytes = 0;
  size_t total = 0;
  const CUresult code = cuMemGetInfo_v2(&free_bytes, &total);
  if (code != CUDA_SUCCESS) return code_text(code);
  return "0:" + std::to_string(free_bytes) + "/" + std::to_string(total);
}

std::string total_memory(const Words &words) {
  size_t total = 0;
  const CUresult code = cuDeviceTotalMem_v2(&total, number_of(word(words, 0)));
  return code_text(code) + ":" + std::to_string(total);
}

// A block and a place in it. Null: the block does not exist, or the place is in a block of another's.
const Block *asked(const Words &words, CUdeviceptr &place, bool &others) {
  const int number = number_of(word(words, 0));
  if (number < 0 || number >= kMost || objects().blocks[number].life == Life::kNone) return nullptr;
  const Block *block = &objects().blocks[number];
  place = place_word(*block, words, 1);
  const bool own = block->life == Life::kLive && place - block->address < block->bytes;
  others = !own && is_of_another(*block, place);
  return block;
}

std::string distance(CUdeviceptr from, CUdeviceptr to) {
  return std::to_string(static_cast<long long>(to - from));
}

std::string range(const Words &words) {
  CUdeviceptr place = kForeign;
  bool others = false;
  const Block *block = asked(words, place, others);
  if (block == nullptr && word(words, 0) != "foreign") return kSkipped;
  if (others) return kIncomparable;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  const CUresult code = cuMemGetAddressRange_v2(&base, &bytes, place);
  if (code != CUDA_SUCCESS || block == nullptr) return code_text(code);
  return "0:" + distance(block->address, base) + "," + std::to_string(bytes);
}

// What an attribute says about a block, in words that do not depend on where the block is.
std::string meaning(CUpointer_attribute attribute, const Block *block, const unsigned long long *value) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      for (int i = 0; i < kMost; ++i) {
        const Context &context = objects().contexts[i];
        if (context.life == Life::kLive && context.handle == reinterpret_cast<CUcontext>(*value)) {
          return std::string("c").append(std::to_string(i));
        }
      }
      return *value == 0 ? "none" : "unknown";
    }
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return *value == 0 || block == nullptr ? "none" : distance(block->address, *value);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return std::to_string(*value);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return *value == 0 ? "none" : "some";
    default: {
      unsigned number = 0;
      std::memcpy(&number, value, sizeof number);
      return std::to_string(number);
    }
  }
}

std::string attribute(const Words &words) {
  CUdeviceptr place = kForeign;
  bool others = false;
  const Block *block = asked(words, place, others);
  if (block == nullptr && word(words, 0) != "foreign") return kSkipped;
  if (others) return kIncomparable;
  const auto which = static_cast<CUpointer_attribute>(size_word(words, 2));
  unsigned long long value[8] = {};
  const CUresult code = cuPointerGetAttribute(value, which, place);
  return code == CUDA_SUCCESS ? "0:" + meaning(which, block, value) : code_text(code);
}

// A read disturbs no other block.
std::string read(const Words &words) {
  CUdeviceptr place = kForeign;
  bool others = false;
  const Block *block = asked(words, place, others);
  if (block == nullptr) return kSkipped;
  if (others) return kIncomparable;
  char byte = 0;
  return code_text(cuMemcpyDtoH_v2(&byte, place, sizeof byte));
}

std::string check(const Words &words) {
  const Block *block = live_block(words, 0);
  if (block == nullptr) return kSkipped;
  return intact(*block) ? "0" : "0!";
}

}  // namespace

void add_queries(Operations &all) {
  all.insert({{"info", memory},
              {"total", total_memory},
              {"range", range},
              {"attribute", attribute},
              {"read", read},
              {"check", check}});
}

}  // namespace oracle
