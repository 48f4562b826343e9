// Memory of the host from cuMemCreate: can it be mapped next to memory of the device in one reserved range, under one
// kernel, one fill and one copy? What does it cost, who may use it, and how fast is it?
#include <unistd.h>

#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kParts = 4;

int device_attribute(CUdevice_attribute which) {
  int value = 0;
  must(cuDeviceGetAttribute(&value, which, 0));
  return value;
}

// The node that is nearest to the device; 0 where the driver names none.
int nearest_node() {
  return std::max(device_attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), 0);
}

struct Kind {
  const char *name;
  CUmemLocation location;
};

std::vector<Kind> kinds() {
  return {{"host_numa", {CU_MEM_LOCATION_TYPE_HOST_NUMA, nearest_node()}},
          {"host_numa_current", {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}},
          {"host", {CU_MEM_LOCATION_TYPE_HOST, 0}}};
}

CUmemAllocationProp memory_at(CUmemLocation location) {
  CUmemAllocationProp memory = device_memory();
  memory.location = location;
  return memory;
}

void support(Test &test) {
  test.number("numa_config", device_attribute(CU_DEVICE_ATTRIBUTE_NUMA_CONFIG));
  test.number("numa_id", device_attribute(CU_DEVICE_ATTRIBUTE_NUMA_ID));
  test.number("host_numa_id", device_attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID));
  test.number("host_numa_vmm", device_attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
  test.number("host_numa_pools", device_attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED));
  for (const Kind &kind : kinds()) {
    const std::string name = kind.name;
    const CUmemAllocationProp memory = memory_at(kind.location);
    std::size_t least = 0, best = 0;
    test.code(name + ".granularity_code",
              cuMemGetAllocationGranularity(&least, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    cuMemGetAllocationGranularity(&best, &memory, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    test.number(name + ".minimum_bytes", least);
    test.number(name + ".recommended_bytes", best);
    const std::size_t before = free_bytes();
    CUmemGenericAllocationHandle handle = 0;
    const CUresult code = cuMemCreate(&handle, 64 * kMiB, &memory, 0);
    test.code(name + ".create_code", code);
    if (code != CUDA_SUCCESS) continue;
    test.number(name + ".device_bytes_of_64MiB", static_cast<long long>(before) - static_cast<long long>(free_bytes()));
    must(cuMemRelease(handle));
  }
  test.note("Attributes of the device, and what cuMemCreate answers for each location of the host.");
}

// A range of four parts: device, host, device, host.
class Mixed {
 public:
  Mixed(CUmemLocation location, std::size_t part) : part_(part), range_(kParts * part) {
    for (std::size_t i = 0; i < kParts; ++i) {
      const CUmemAllocationProp memory = i % 2 == 0 ? device_memory() : memory_at(location);
      must(cuMemCreate(&handles_[i], part, &memory, 0));
      cleanup_.add([handle = handles_[i]] { cuMemRelease(handle); });
    }
  }
  ~Mixed() {
    for (const CUdeviceptr address : mapped_) cuMemUnmap(address, part_);
  }
  Mixed(const Mixed &) = delete;
  Mixed &operator=(const Mixed &) = delete;

  CUresult map() {
    for (std::size_t i = 0; i < kParts; ++i) {
      if (const CUresult code = cuMemMap(at(i), part_, 0, handles_[i], 0); code != CUDA_SUCCESS) return code;
      mapped_.push_back(at(i));
    }
    return CUDA_SUCCESS;
  }
  CUdeviceptr at(std::size_t part = 0) const { return range_.at(part * part_); }
  std::size_t bytes() const { return range_.bytes(); }

 private:
  std::size_t part_;
  Range range_;
  Cleanup cleanup_;
  CUmemGenericAllocationHandle handles_[kParts] = {};
  std::vector<CUdeviceptr> mapped_;
};

// Whether the host can read there; asks the kernel, which is not killed if it cannot.
bool is_readable(CUdeviceptr address) {
  int ends[2] = {};
  if (pipe(ends) != 0) return false;
  const bool read = write(ends[1], reinterpret_cast<const void *>(address), 4) == 4;
  for (const int end : ends) close(end);
  return read;
}

std::size_t wrong_words(const std::vector<unsigned> &words, unsigned first, unsigned step) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < words.size(); ++i) wrong += words[i] != first + step * static_cast<unsigned>(i);
  return wrong;
}

void use(Test &test, const std::string &name, const Mixed &mixed, std::size_t part, CUmemLocation location) {
  const Kernels kernels = load_kernels();
  const std::size_t words = mixed.bytes() / 4;
  std::vector<unsigned> back(words);
  const auto read = [&] { return cuMemcpyDtoH(back.data(), mixed.at(), mixed.bytes()); };
  CUresult code = fill(kernels, mixed.at(), words, 7, CU_STREAM_LEGACY);
  if (code == CUDA_SUCCESS) code = cuCtxSynchronize();
  test.code(name + ".kernel_code", code);
  if (code != CUDA_SUCCESS) skip("a kernel over " + name + " memory failed");
  test.code(name + ".copy_to_the_host_code", read());
  test.number(name + ".wrong_words_after_the_kernel", wrong_words(back, 7, 1));
  CUdeviceptr plain = 0;
  must(cuMemAlloc(&plain, mixed.bytes()));
  Cleanup cleanup;
  cleanup.add([plain] { cuMemFree(plain); });
  test.code(name + ".copy_code", cuMemcpyDtoD(plain, mixed.at(), mixed.bytes()));
  must(cuMemcpyDtoH(back.data(), plain, mixed.bytes()));
  test.number(name + ".wrong_words_of_the_copy", wrong_words(back, 7, 1));
  test.code(name + ".fill_code", cuMemsetD32(mixed.at(), 9, words));
  must(cuCtxSynchronize());
  must(read());
  test.number(name + ".wrong_words_after_the_fill", wrong_words(back, 9, 0));
  unsigned type = 0;
  const CUresult asked = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mixed.at(1));
  test.code(name + ".memory_type_code", asked);
  test.number(name + ".memory_type", type);
  CUmemAccessDesc host = {};
  host.location = location;
  host.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult access = cuMemSetAccess(mixed.at(1), part, &host, 1);
  test.code(name + ".access_of_the_host_code", access);
  const bool readable = is_readable(mixed.at(1));
  test.yes(name + ".host_can_read", readable);
  if (access == CUDA_SUCCESS && readable) {
    volatile unsigned *const word = reinterpret_cast<volatile unsigned *>(mixed.at(1));
    test.yes(name + ".host_reads_the_bytes", *word == 9);
    *word = 11;
    must(read());
    test.yes(name + ".device_reads_the_hosts_bytes", back[part / 4] == 11);
  }
}

void mixed(Test &test) {
  std::string used;
  for (const Kind &kind : kinds()) {
    const std::string name = kind.name;
    const CUmemAllocationProp memory = memory_at(kind.location);
    CUmemGenericAllocationHandle probe = 0;
    if (const CUresult code = cuMemCreate(&probe, kGranule, &memory, 0); code != CUDA_SUCCESS) {
      test.code(name + ".create_code", code);
      continue;
    }
    must(cuMemRelease(probe));
    Mixed parts(kind.location, kGranule);
    const CUresult mapped = parts.map();
    test.code(name + ".map_code", mapped);
    if (mapped != CUDA_SUCCESS) continue;
    const CUresult allowed = allow(parts.at(), parts.bytes());
    test.code(name + ".access_code", allowed);
    if (allowed != CUDA_SUCCESS) continue;
    use(test, name, parts, kGranule, kind.location);
    used += " " + name;
  }
  test.note("Granules of device and host in turns in one range; used:" + (used.empty() ? " none" : used) + ".");
}

// The address of device memory gets memory of the host under an instantiated graph, and the rate of both.
void rates(Test &test) {
  const std::size_t bytes = simulated() ? 4 * kMiB : 256 * kMiB;
  const Kernels kernels = load_kernels();
  const Kind kind = kinds().front();
  const CUmemAllocationProp memory = memory_at(kind.location);
  CUmemGenericAllocationHandle host = 0;
  Cleanup cleanup;
  CUresult created = CUDA_SUCCESS;
  const double us = microseconds([&] { created = cuMemCreate(&host, bytes, &memory, 0); });
  if (created != CUDA_SUCCESS) skip("cuMemCreate of memory of the host answered " + std::to_string(created));
  cleanup.add([host] { cuMemRelease(host); });
  const auto gib = static_cast<double>(bytes) / static_cast<double>(kGiB);
  test.number("create_ms_per_GiB", us / 1000 / gib);
  const Handles device(bytes, 1);
  const Range range(bytes);
  CUdeviceptr plain = 0;
  must(cuMemAlloc(&plain, bytes));
  cleanup.add([plain] { cuMemFree(plain); });
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  cleanup.add([stream] { cuStreamDestroy(stream); });
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  must(copy(kernels, plain, range.at(), bytes / 4, stream));
  must(cuStreamEndCapture(stream, &graph));
  must(cuGraphInstantiate(&exec, graph, 0));
  must(cuGraphDestroy(graph));
  cleanup.add([exec] { cuGraphExecDestroy(exec); });
  const auto GB_per_s = [&](const std::function<CUresult()> &act) {
    must(act());
    must(cuStreamSynchronize(stream));
    return static_cast<double>(bytes) / 1000 / microseconds([&] {
             must(act());
             must(cuStreamSynchronize(stream));
           });
  };
  const auto measure = [&](const std::string &name, CUmemGenericAllocationHandle handle, unsigned value) {
    test.number(name + ".map_and_access_us", microseconds([&] {
                  must(cuMemMap(range.at(), bytes, 0, handle, 0));
                  must(allow(range.at(), bytes));
                }));
    must(cuMemsetD32Async(range.at(), value, bytes / 4, stream));
    test.number(name + ".fill_GB_per_s",
                GB_per_s([&] { return cuMemsetD32Async(range.at(), value, bytes / 4, stream); }));
    test.number(name + ".copy_to_it_GB_per_s",
                GB_per_s([&] { return cuMemcpyDtoDAsync(range.at(), plain, bytes, stream); }));
    test.number(name + ".copy_from_it_GB_per_s",
                GB_per_s([&] { return cuMemcpyDtoDAsync(plain, range.at(), bytes, stream); }));
    must(cuMemsetD32Async(range.at(), value, bytes / 4, stream));
    test.number(name + ".kernel_in_a_graph_GB_per_s", GB_per_s([&] { return cuGraphLaunch(exec, stream); }));
    unsigned word = 0;
    must(cuMemcpyDtoH(&word, plain + bytes - 4, 4));
    test.yes(name + ".graph_sees_the_bytes", word == value);
    test.number(name + ".unmap_us", microseconds([&] { must(cuMemUnmap(range.at(), bytes)); }));
  };
  measure("device", device[0], 21);
  measure("host", host, 22);
  measure("device_again", device[0], 23);
  test.note("256 MiB of the device, then of the host, then of the device again at one address.");
}

}  // namespace

int main() {
  return question::run({{"support", support}, {"rates", rates}, {"mixed", mixed}});
}
