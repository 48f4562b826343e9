// How fast are copies between host and device: by size, number in flight and direction; from pinned, registered and
// plain memory?
#include <sys/mman.h>

#include <cstring>

#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kMostInFlight = 8;
constexpr double kUsAtLeast = 20'000;

enum class Way { kToDevice, kToHost, kBoth };

// 1 GiB on both sides, of which each copy takes the beginning: copies in flight may write the same bytes.
struct Sides {
  explicit Sides(Cleanup &cleanup) : most(simulated() ? 4 * kMiB : free_bytes() > 8 * kGiB ? kGiB : 64 * kMiB) {
    must(cuMemAlloc(&device, 2 * most));
    cleanup.add([this] { cuMemFree(device); });
    for (CUstream &stream : streams) {
      must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      cleanup.add([&stream] { cuStreamDestroy(stream); });
    }
  }
  std::size_t most;
  CUdeviceptr device = 0;
  CUstream streams[2 * kMostInFlight] = {};
};

// GB/s with `in_flight` copies each way, each in a stream of its own.
double rate(const Sides &sides, char *host, Way way, std::size_t bytes, std::size_t in_flight) {
  const std::size_t ways = way == Way::kBoth ? 2 : 1;
  const auto copy = [&](std::size_t i) {
    const CUstream stream = sides.streams[i];
    must(cuStreamSynchronize(stream));
    if (way == Way::kToDevice || (way == Way::kBoth && i % 2 == 0)) {
      must(cuMemcpyHtoDAsync(sides.device, host, bytes, stream));
    } else {
      must(cuMemcpyDtoHAsync(host + sides.most, sides.device + sides.most, bytes, stream));
    }
  };
  const auto finish = [&] {
    for (std::size_t i = 0; i < ways * in_flight; ++i) must(cuStreamSynchronize(sides.streams[i]));
  };
  for (std::size_t i = 0; i < ways; ++i) copy(i);
  finish();
  double copies = 0, us = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (us < kUsAtLeast) {
    for (std::size_t i = 0; i < ways * in_flight; ++i) copy(i);
    copies += static_cast<double>(ways * in_flight);
    finish();
    us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }
  return copies * static_cast<double>(bytes) / us / 1000;
}

void rates(Test &test, const std::string &memory, const Sides &sides, char *host, const std::vector<std::size_t> &sizes,
           const std::vector<std::size_t> &in_flight) {
  for (const std::size_t bytes : sizes) {
    if (bytes > sides.most) continue;
    for (const std::size_t count : in_flight) {
      const std::string name = memory + size_name(bytes) + "." + std::to_string(count) + "_in_flight.";
      test.number(name + "to_device_GB_per_s", rate(sides, host, Way::kToDevice, bytes, count));
      test.number(name + "to_host_GB_per_s", rate(sides, host, Way::kToHost, bytes, count));
      test.number(name + "both_GB_per_s", rate(sides, host, Way::kBoth, bytes, count));
    }
  }
}

void pinned(Test &test) {
  Cleanup cleanup;
  const Sides sides(cleanup);
  void *host = nullptr;
  must(cuMemHostAlloc(&host, 2 * sides.most, CU_MEMHOSTALLOC_PORTABLE));
  cleanup.add([host] { cuMemFreeHost(host); });
  rates(test, "", sides, static_cast<char *>(host), {64 * kKiB, kMiB, 16 * kMiB, 256 * kMiB, kGiB}, {1, 2, 4, 8});
  test.note("Memory of cuMemHostAlloc; both: the sum of both directions at once.");
}

char *touched(Cleanup &cleanup, std::size_t bytes) {
  void *const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) skip("no memory of the host");
  cleanup.add([=] { munmap(pages, bytes); });
  std::memset(pages, 1, bytes);
  return static_cast<char *>(pages);
}

void other_memory(Test &test) {
  Cleanup cleanup;
  const Sides sides(cleanup);
  char *const host = touched(cleanup, 2 * sides.most);
  rates(test, "plain.", sides, host, {64 * kKiB, kMiB, 16 * kMiB, 256 * kMiB}, {1, 4});
  must(cuMemHostRegister(host, 2 * sides.most, CU_MEMHOSTREGISTER_PORTABLE));
  cleanup.add([host] { cuMemHostUnregister(host); });
  rates(test, "registered.", sides, host, {kMiB, 256 * kMiB}, {1, 4});
  test.note("The same memory, before and after cuMemHostRegister.");
}

}  // namespace

int main() {
  return question::run({{"pinned", pinned}, {"other_memory", other_memory}});
}
