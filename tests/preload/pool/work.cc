#include "work.h"

#include <simcuda/simcuda.h>

#include <algorithm>
#include <array>

namespace preload::pool {
namespace {

// The per-thread stream is used in both ways: through exports of its own, and as a handle.
bool by_own_export(CUstream stream) {
  return stream == CU_STREAM_PER_THREAD;
}

CUresult host_to_device(const Act &act) {
  return by_own_export(act.stream) ? cuMemcpyHtoDAsync_v2_ptsz(act.address, act.host_source, act.bytes, nullptr)
                                   : cuMemcpyHtoDAsync_v2(act.address, act.host_source, act.bytes, act.stream);
}

CUresult any_to_any(const Act &act) {
  return cuMemcpyAsync(act.address, reinterpret_cast<CUdeviceptr>(act.host_source), act.bytes, act.stream);
}

CUresult rectangle(const Act &act) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = act.host_source;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = act.address;
  copy.WidthInBytes = copy.srcPitch = copy.dstPitch = act.bytes / 2;
  copy.Height = 2;
  return cuMemcpy2DAsync_v2(&copy, act.stream);
}

CUresult device_to_device(const Act &act) {
  return cuMemcpyDtoDAsync_v2(act.address, act.at->late, act.bytes, act.stream);
}

CUresult peer_to_device(const Act &act) {
  return cuMemcpyPeerAsync(act.address, act.owner->context, act.at->late, act.at->context, act.bytes, act.stream);
}

CUresult memset_bytes(const Act &act) {
  return cuMemsetD8Async(act.address, static_cast<unsigned char>(act.word), act.bytes, act.stream);
}

CUresult memset_shorts(const Act &act) {
  return cuMemsetD16Async(act.address, static_cast<unsigned short>(act.word), act.bytes / 2, act.stream);
}

CUresult memset_words(const Act &act) {
  return by_own_export(act.stream) ? cuMemsetD32Async_ptsz(act.address, act.word, act.bytes / 4, nullptr)
                                   : cuMemsetD32Async(act.address, act.word, act.bytes / 4, act.stream);
}

CUresult memset_rectangle(const Act &act) {
  return cuMemsetD2D32Async(act.address, act.bytes / 2, act.word, act.bytes / 8, 2, act.stream);
}

CUresult kernel(const Act &act) {
  CUdeviceptr address = act.address;
  std::uint64_t words = act.bytes / 4;
  std::uint32_t word = act.word;
  void *parameters[] = {&address, &words, &word};
  return by_own_export(act.stream)
             ? cuLaunchKernel_ptsz(act.at->fill, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr)
             : cuLaunchKernel(act.at->fill, 1, 1, 1, 1, 1, 1, 0, act.stream, parameters, nullptr);
}

struct Filling {
  CUdeviceptr address;
  std::uint32_t words;
  std::uint32_t word;
};

// The host writes device memory through the simulator's view: as mapped or managed memory allows with a real device.
void fill_from_host(void *filling) {
  const auto *asked = static_cast<Filling *>(filling);
  std::fill_n(static_cast<std::uint32_t *>(simcuda_host_view(asked->address)), asked->words, asked->word);
  delete asked;
}

CUresult host_function(const Act &act) {
  auto *filling = new Filling{act.address, act.bytes / 4, act.word};
  const CUresult code = by_own_export(act.stream) ? cuLaunchHostFunc_ptsz(nullptr, fill_from_host, filling)
                                                  : cuLaunchHostFunc(act.stream, fill_from_host, filling);
  if (code != CUDA_SUCCESS) delete filling;
  return code;
}

// A memset and a kernel that were captured beforehand. The graph is not destroyed: it may run for long.
CUresult graph(const Act &act) {
  CUgraph recorded = nullptr;
  CUgraphExec executable = nullptr;
  Act into = act;
  into.stream = act.capturing;
  into.bytes = act.bytes / 2 / 8 * 8;
  Act behind = into;
  behind.address += into.bytes;
  behind.bytes = act.bytes - into.bytes;
  CUresult code = cuStreamBeginCapture_v2(act.capturing, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (code == CUDA_SUCCESS) code = memset_words(into);
  if (code == CUDA_SUCCESS) code = kernel(behind);
  if (code == CUDA_SUCCESS) code = cuStreamEndCapture(act.capturing, &recorded);
  if (code == CUDA_SUCCESS) code = cuGraphInstantiateWithFlags(&executable, recorded, 0);
  if (code == CUDA_SUCCESS) code = cuGraphDestroy(recorded);
  if (code != CUDA_SUCCESS) return code;
  return by_own_export(act.stream) ? cuGraphLaunch_ptsz(executable, nullptr) : cuGraphLaunch(executable, act.stream);
}

void fill_from_callback(CUstream, CUresult, void *filling) {
  fill_from_host(filling);
}

CUresult callback(const Act &act) {
  auto *filling = new Filling{act.address, act.bytes / 4, act.word};
  const CUresult code = cuStreamAddCallback(act.stream, fill_from_callback, filling, 0);
  if (code != CUDA_SUCCESS) delete filling;
  return code;
}

CUresult device_to_host(const Act &act) {
  return fetch(act.host_target, act.address, act.bytes, act.stream);
}

CUresult device_to_scratch(const Act &act) {
  const CUresult code = cuMemcpyDtoDAsync_v2(act.scratch, act.address, act.bytes, act.stream);
  return code != CUDA_SUCCESS ? code : fetch(act.host_target, act.scratch, act.bytes, act.stream);
}

CUresult device_to_peer(const Act &act) {
  const CUresult code =
      cuMemcpyPeerAsync(act.scratch, act.at->context, act.address, act.owner->context, act.bytes, act.stream);
  return code != CUDA_SUCCESS ? code : fetch(act.host_target, act.scratch, act.bytes, act.stream);
}

constexpr std::array kKinds = {
    Kind{"copy from the host", true, false, false, false, kLateFromHost, host_to_device},
    Kind{"copy from anywhere", true, false, false, false, kLateFromHost, any_to_any},
    Kind{"copy of a rectangle", true, false, false, false, kLateFromHost, rectangle},
    Kind{"copy from the device", false, false, false, false, kLateFromDevice, device_to_device},
    Kind{"copy from a peer", false, false, true, false, kLateFromDevice, peer_to_device},
    Kind{"memset of bytes", false, false, false, false, kLateMemset, memset_bytes},
    Kind{"memset of shorts", false, false, false, false, kLateMemset, memset_shorts},
    Kind{"memset of words", true, false, false, false, kLateMemset, memset_words},
    Kind{"memset of a rectangle", true, false, false, false, kLateMemset, memset_rectangle},
    Kind{"kernel", true, false, false, false, kLateKernel, kernel},
    Kind{"host function", true, false, false, false, kLateHostFunction, host_function},
    Kind{"stream callback", true, false, false, false, kLateHostFunction, callback},
    Kind{"graph", true, false, false, false, kLateGraph, graph},
    Kind{"copy to the host", false, true, false, false, 0, device_to_host},
    Kind{"copy to the device", false, true, false, true, 0, device_to_scratch},
    Kind{"copy to a peer", false, true, true, true, 0, device_to_peer},
};

}  // namespace

std::span<const Kind> kinds() {
  return kKinds;
}

const char *late_writer(std::uint32_t word) {
  switch (word) {
    case late_word(kLateFromHost):
      return "a late copy from the host";
    case late_word(kLateFromDevice):
      return "a late copy from a device";
    case late_word(kLateMemset):
      return "a late memset";
    case late_word(kLateKernel):
      return "a late kernel";
    case late_word(kLateHostFunction):
      return "a late host function";
    case late_word(kLateGraph):
      return "a late graph";
    default:
      return "another owner";
  }
}

CUresult submit_filler(CUstream stream, CUdeviceptr scratch) {
  return cuMemsetD8Async(scratch + kScratchBytes, 0, kFillerBytes, stream);
}

bool in_flight(CUstream stream) {
  return cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

CUresult fetch(void *target, CUdeviceptr address, std::uint32_t bytes, CUstream stream) {
  return by_own_export(stream) ? cuMemcpyDtoHAsync_v2_ptsz(target, address, bytes, nullptr)
                               : cuMemcpyDtoHAsync_v2(target, address, bytes, stream);
}

CUresult free_in_order(CUdeviceptr address, CUstream stream) {
  return by_own_export(stream) ? cuMemFreeAsync_ptsz(address, nullptr) : cuMemFreeAsync(address, stream);
}

}  // namespace preload::pool
