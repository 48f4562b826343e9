// capture_race MODE ROUNDS SEED WAYS [polite]: one thread captures a few operations into a graph, ends the capture,
// launches the graph and checks its bytes, repeatedly; three others allocate, use and free meanwhile, more than fits
// without cleaning and growing. MODE: global | thread_local | relaxed. WAYS: graph (all that make a new one) | again
// (each graph is captured twice) | graphics (each second capture is for a graphics interface) | unheard_of (by a
// function that nobody knows; the context is synchronised after each). polite: the others exchange to relaxed mode
// first, as they must without Ration.
#include <simcuda/simcuda.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "capturing.h"

namespace {

using namespace preload::pool;

constexpr unsigned kAllocators = 3;
constexpr std::size_t kGraphBytes = 4096;

struct Race {
  Verdict verdict;
  CUcontext context = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool polite = false;
  std::string_view ways;
  std::atomic<bool> over{false};
  std::atomic<unsigned long long> taken{0}, refused{0};
};

// Allocates and frees blocks at random; its writes keep them from being clean at once.
void allocate_and_free(Race &race, std::uint64_t seed) {
  Verdict &verdict = race.verdict;
  std::mt19937_64 random(seed);
  CUstream stream = nullptr;
  if (!verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(race.context)) ||
      !verdict.succeeded("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) {
    return;
  }
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (race.polite) verdict.succeeded("cuThreadExchangeStreamCaptureMode", cuThreadExchangeStreamCaptureMode(&mode));
  std::vector<CUdeviceptr> blocks;
  while (!race.over && !verdict.failed()) {
    if (blocks.size() < 8 && random() % 2 == 0) {
      CUdeviceptr block = 0;
      const CUresult code = cuMemAlloc_v2(&block, std::size_t{512} << random() % 12);
      if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        ++race.refused;  // quarantined memory is not obtainable while a capture runs
      } else if (verdict.succeeded("cuMemAlloc beside a capture", code)) {
        ++race.taken;
        blocks.push_back(block);
        verdict.succeeded("cuMemsetD8Async", cuMemsetD8Async(block, 0xee, 512, stream));
      }
    } else if (!blocks.empty()) {
      const CUdeviceptr block = blocks[random() % blocks.size()];
      std::erase(blocks, block);
      verdict.succeeded("cuMemFree beside a capture", cuMemFree_v2(block));
    }
    std::this_thread::yield();
  }
  for (const CUdeviceptr block : blocks) verdict.succeeded("cuMemFree", cuMemFree_v2(block));
}

struct Recorder {
  CUstream blocking = nullptr, non_blocking = nullptr, joined = nullptr;
  CUevent fork = nullptr, join = nullptr;
  CUdeviceptr one = 0, other = 0;
  void *seen = nullptr;

  bool set_up(Verdict &verdict) {
    return verdict.succeeded("cuStreamCreate", cuStreamCreate(&blocking, CU_STREAM_DEFAULT)) &&
           verdict.succeeded("cuStreamCreate", cuStreamCreate(&non_blocking, CU_STREAM_NON_BLOCKING)) &&
           verdict.succeeded("cuStreamCreate", cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING)) &&
           verdict.succeeded("cuEventCreate", cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING)) &&
           verdict.succeeded("cuEventCreate", cuEventCreate(&join, CU_EVENT_DISABLE_TIMING)) &&
           verdict.succeeded("cuMemAlloc", cuMemAlloc_v2(&one, kGraphBytes)) &&
           verdict.succeeded("cuMemAlloc", cuMemAlloc_v2(&other, kGraphBytes)) &&
           verdict.succeeded("cuMemHostAlloc", cuMemHostAlloc(&seen, kGraphBytes, 0));
  }

  // word -> one -> other -> the host, the middle step in a stream that joins.
  bool record(CUstream stream, std::uint32_t word, Verdict &verdict) {
    return verdict.succeeded("captured memset", cuMemsetD32Async(one, word, kGraphBytes / 4, stream)) &&
           verdict.succeeded("captured record", cuEventRecord(fork, stream)) &&
           verdict.succeeded("captured wait", cuStreamWaitEvent(joined, fork, 0)) &&
           verdict.succeeded("captured copy", cuMemcpyDtoDAsync_v2(other, one, kGraphBytes, joined)) &&
           verdict.succeeded("captured record", cuEventRecord(join, joined)) &&
           verdict.succeeded("captured wait", cuStreamWaitEvent(stream, join, 0)) &&
           verdict.succeeded("captured copy", cuMemcpyDtoHAsync_v2(seen, other, kGraphBytes, stream));
  }

  bool launched_right(CUgraph graph, CUstream stream, std::uint32_t word, Verdict &verdict) {
    CUgraphExec executable = nullptr;
    if (!verdict.succeeded("cuGraphInstantiate", cuGraphInstantiateWithFlags(&executable, graph, 0)) ||
        !verdict.succeeded("cuGraphLaunch", cuGraphLaunch(executable, stream)) ||
        !verdict.succeeded("cuStreamSynchronize", cuStreamSynchronize(stream))) {
      return false;
    }
    const auto *words = static_cast<const std::uint32_t *>(seen);
    if (std::any_of(words, words + kGraphBytes / 4, [word](std::uint32_t found) { return found != word; })) {
      dprintf(1, "wrong bytes in a graph's result\n");
      verdict.fail(kWrongBytes);
    }
    return verdict.succeeded("cuGraphExecDestroy", cuGraphExecDestroy(executable)) &&
           verdict.succeeded("cuGraphDestroy", cuGraphDestroy(graph));
  }
};

void capture(Race &race, unsigned long long rounds, std::uint64_t seed) {
  Verdict &verdict = race.verdict;
  std::mt19937_64 random(seed);
  Recorder recorder;
  if (!recorder.set_up(verdict)) return;
  CUresult (*unheard_of)(unsigned long long, CUstreamCaptureMode, CUstream) = nullptr;
  if (race.ways == "unheard_of" &&
      !verdict.succeeded("cuGetProcAddress",
                         cuGetProcAddress_v2("cuStreamBeginCaptureUnheardOf", reinterpret_cast<void **>(&unheard_of),
                                             13000, 0, nullptr))) {
    return;
  }
  // Until the others have met enough captures, whatever the scheduler prefers.
  for (std::uint32_t round = 1; (round <= rounds || race.taken < rounds / 10) && !verdict.failed(); ++round) {
    const CUstream streams[] = {recorder.blocking, recorder.non_blocking, CU_STREAM_PER_THREAD};
    const CUstream stream = streams[random() % 3];
    CUgraph graph = nullptr;
    const bool begun = unheard_of != nullptr
                           ? verdict.succeeded("cuStreamBeginCaptureUnheardOf", unheard_of(7, race.mode, stream))
                           : begin(stream, race.mode, random(), &graph, verdict);
    if (!begun || !recorder.record(stream, round, verdict)) return;
    if (race.mode == CU_STREAM_CAPTURE_MODE_RELAXED && random() % 4 == 0) {
      CUdeviceptr block = 0;
      const CUresult code = cuMemAlloc_v2(&block, 1 << random() % 20);
      if (code != CUDA_ERROR_OUT_OF_MEMORY && verdict.succeeded("cuMemAlloc in a relaxed capture", code)) {
        verdict.succeeded("cuMemFree in a relaxed capture", cuMemFree_v2(block));
      }
    }
    for (auto pauses = random() % 8; pauses > 0; --pauses) std::this_thread::yield();
    std::uint32_t word = round;
    if (!end(stream, &graph, verdict)) return;
    if (race.ways == "again") {
      word = ~round;
      const CUgraph before = graph;
      if (!begin_again(stream, race.mode, graph, verdict) || !recorder.record(stream, word, verdict)) return;
      for (auto pauses = random() % 8; pauses > 0; --pauses) std::this_thread::yield();
      if (!end(stream, &graph, verdict)) return;
      verdict.succeeded("the graph is the same", graph == before ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
    }
    if (!recorder.launched_right(graph, stream, word, verdict)) return;
    if (unheard_of != nullptr) verdict.succeeded("cuCtxSynchronize", cuCtxSynchronize());
    if (race.ways == "graphics") {
      if (!begin_to_graphics(stream, verdict) || !recorder.record(stream, word, verdict)) return;
      for (auto pauses = random() % 8; pauses > 0; --pauses) std::this_thread::yield();
      if (!end_to_graphics(stream, verdict)) return;
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 5) return kOtherFailure;
  Race race;
  const std::string_view mode = argv[1];
  race.mode = mode == "global"         ? CU_STREAM_CAPTURE_MODE_GLOBAL
              : mode == "thread_local" ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                                       : CU_STREAM_CAPTURE_MODE_RELAXED;
  race.ways = argv[4];
  race.polite = argc > 5 && std::string_view(argv[5]) == "polite";
  const unsigned long long rounds = strtoull(argv[2], nullptr, 10);
  const std::uint64_t seed = strtoull(argv[3], nullptr, 10);
  Verdict &verdict = race.verdict;
  if (!verdict.succeeded("cuInit", cuInit(0)) ||
      !verdict.succeeded("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&race.context, 0)) ||
      !verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(race.context))) {
    return verdict.status();
  }
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= kAllocators; ++i) {
    threads.emplace_back([&race, i, seed] { allocate_and_free(race, seed * 64 + i); });
  }
  while (race.taken < 2 * kAllocators && !verdict.failed()) std::this_thread::yield();
  capture(race, rounds, seed * 64);
  race.over = true;
  for (std::thread &thread : threads) thread.join();
  dprintf(1, "%s, seed %llu: %llu captures, meanwhile %llu blocks, %llu refused\n", argv[1],
          static_cast<unsigned long long>(seed), rounds, race.taken.load(), race.refused.load());
  return verdict.status();
}
