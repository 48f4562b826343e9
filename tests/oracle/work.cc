// Operations that queue work: host functions and kernels that wait for flags, memsets, copies.
#include <algorithm>

#include "simcuda/simcuda.h"
#include "tests/oracle/flags.h"
#include "tests/oracle/operations.h"
#include "tests/oracle/program.h"
#include "tests/oracle/stamp.h"

namespace oracle {
namespace {

constexpr size_t kFetched = 64 << 10;
constexpr size_t kCopied = 1024;  // no more than what bears marks at a block's beginning
constexpr const char *kKernel = "oracle_gated";

void run_kernel(const simcuda_launch *launch) {
  flags().pass(*static_cast<const Gate *>(launch->params[0]));
}

void run_host_function(void *gate) {
  flags().pass(*static_cast<const Gate *>(gate));
}

// `f3`, `f3 l1`, `l1` or nothing, from this word on. Lives as long as the process.
Gate *gate_words(const Words &words, size_t index) {
  auto *gate = new Gate;
  for (; index < words.size(); ++index) {
    (words[index][0] == 'f' ? gate->flag : gate->lock) = number_of(words[index]) % kMostFlags;
  }
  return gate;
}

std::string host_function(const Words &words) {
  CUstream stream = nullptr;
  if (!stream_word(words, 0, stream)) return kSkipped;
  Gate *gate = gate_words(words, 1);
  const CUresult code = cuLaunchHostFunc(stream, run_host_function, gate);
  if (code == CUDA_SUCCESS) flags().await(*gate);
  return code_text(code);
}

CUresult find_kernel(CUfunction *function) {
  const int current = current_context();
  if (current >= 0 && objects().contexts[current].gated != nullptr) {
    *function = objects().contexts[current].gated;
    return CUDA_SUCCESS;
  }
  CUmodule module = nullptr;
  CUresult code = cuModuleLoadData(&module, "any image");
  if (code == CUDA_SUCCESS) code = cuModuleGetFunction(function, module, kKernel);
  if (code == CUDA_SUCCESS && current >= 0) objects().contexts[current].gated = *function;
  return code;
}

std::string kernel(const Words &words) {
  CUstream stream = nullptr;
  if (!stream_word(words, 0, stream)) return kSkipped;
  CUfunction function = nullptr;
  if (const CUresult code = find_kernel(&function); code != CUDA_SUCCESS) return code_text(code) + ":load";
  Gate *gate = gate_words(words, 1);
  void *parameters[] = {gate};
  const CUresult code = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  if (code == CUDA_SUCCESS) flags().await(*gate);
  return code_text(code);
}

std::string set(const Words &words) {
  flags().set(number_of(word(words, 0)) % kMostFlags);
  return "0";
}

std::string lock(const Words &words) {
  flags().lock(number_of(word(words, 0)) % kMostFlags);
  return "0";
}

std::string unlock(const Words &words) {
  flags().unlock(number_of(word(words, 0)) % kMostFlags);
  return "0";
}

std::string fill(const Words &words) {
  Block *block = live_block(words, 0);
  CUstream stream = nullptr;
  if (block == nullptr || !stream_word(words, 1, stream)) return kSkipped;
  return code_text(stamp_in_order(*block, stream));
}

// The target may show the source's marks from now on.
std::string copy(const Words &words) {
  Block *target = live_block(words, 0);
  Block *source = live_block(words, 1);
  CUstream stream = nullptr;
  if (target == nullptr || source == nullptr || target == source || !stream_word(words, 2, stream)) return kSkipped;
  if (!source->readable || !target->readable) return kSkipped;
  target->owners.insert(target->owners.end(), source->owners.begin(), source->owners.end());
  for (Block *used : {target, source}) used->used_in.emplace_back(stream);
  const size_t bytes = std::min({target->marked, source->marked, kCopied}) / 4 * 4;
  return code_text(cuMemcpyDtoDAsync_v2(target->address, source->address, bytes, stream));
}

std::string fetch(const Words &words) {
  Block *block = live_block(words, 0);
  CUstream stream = nullptr;
  if (block == nullptr || !stream_word(words, 1, stream)) return kSkipped;
  block->used_in.emplace_back(stream);
  static auto *target = new char[kFetched];
  return code_text(cuMemcpyDtoHAsync_v2(target, block->address, std::min(block->bytes, kFetched), stream));
}

}  // namespace

void register_kernel() {
  const size_t bytes[] = {sizeof(Gate)};
  simcuda_register_kernel(kKernel, run_kernel, bytes, 1);
}

void add_work(Operations &all) {
  all.insert({{"host_function", host_function},
              {"kernel", kernel},
              {"set", set},
              {"lock", lock},
              {"unlock", unlock},
              {"fill", fill},
              {"copy", copy},
              {"fetch", fetch}});
}

}  // namespace oracle
