// What do allocations cost: cuMemAlloc and cuMemFree by size; the calls of virtual memory management by the size of a
// handle; access to many mappings in one call or in many; and a large preallocation out of handles of one size?
#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kShareAtMost = 10;  // a tenth of the free memory stays free

bool fits(std::size_t bytes) {
  return bytes <= free_bytes() / kShareAtMost * (kShareAtMost - 1);
}

int repetitions(std::size_t bytes) {
  if (bytes <= 2 * kMiB) return 100;
  return bytes <= 64 * kMiB ? 40 : bytes <= kGiB ? 10 : 4;
}

// One block after the other, and many blocks that live together: the driver keeps a chunk as long as a block is in it.
void plain(Test &test) {
  for (const std::size_t bytes : {4 * kKiB, 64 * kKiB, kMiB, 2 * kMiB, 32 * kMiB, kGiB, 8 * kGiB}) {
    if (!fits(bytes)) continue;
    const std::string name = size_name(bytes);
    CUdeviceptr block = 0;
    std::vector<double> alone, freed;
    must(cuMemAlloc(&block, bytes));
    must(cuMemFree(block));
    for (int i = 0; i < repetitions(bytes); ++i) {
      alone.push_back(microseconds([&] { must(cuMemAlloc(&block, bytes)); }));
      freed.push_back(microseconds([&] { must(cuMemFree(block)); }));
    }
    test.number("alloc_alone_us_" + name, median(alone));
    test.number("free_alone_us_" + name, median(freed));
    const std::size_t count = std::min<std::size_t>(100, std::min(16 * kGiB, free_bytes() / 2) / bytes);
    if (count < 2) continue;
    std::vector<CUdeviceptr> blocks(count);
    std::vector<double> taken, returned;
    for (CUdeviceptr &one : blocks) taken.push_back(microseconds([&] { must(cuMemAlloc(&one, bytes)); }));
    for (const CUdeviceptr one : blocks) returned.push_back(microseconds([&] { must(cuMemFree(one)); }));
    test.number("alloc_together_us_" + name, median(taken));
    test.number("free_together_us_" + name, median(returned));
  }
  test.note("Medians; alone: each block is freed before the next one, together: up to 100 blocks live at once.");
}

struct Durations {
  std::vector<double> reserve, create, map, allow, unmap, release, address_free;
};

void measure_handle(std::size_t bytes, const CUmemAllocationProp &memory, Durations *each) {
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  each->reserve.push_back(microseconds([&] { must(cuMemAddressReserve(&address, bytes, 0, 0, 0)); }));
  each->create.push_back(microseconds([&] { must(cuMemCreate(&handle, bytes, &memory, 0)); }));
  each->map.push_back(microseconds([&] { must(cuMemMap(address, bytes, 0, handle, 0)); }));
  each->allow.push_back(microseconds([&] { must(allow(address, bytes)); }));
  each->unmap.push_back(microseconds([&] { must(cuMemUnmap(address, bytes)); }));
  each->release.push_back(microseconds([&] { must(cuMemRelease(handle)); }));
  each->address_free.push_back(microseconds([&] { must(cuMemAddressFree(address, bytes)); }));
}

void handles(Test &test) {
  const CUmemAllocationProp memory = device_memory();
  for (std::size_t bytes = 2 * kMiB; bytes <= kGiB && fits(bytes); bytes *= 2) {
    Durations first, each;
    measure_handle(bytes, memory, &first);
    for (int i = 0; i < repetitions(bytes); ++i) measure_handle(bytes, memory, &each);
    const std::string name = size_name(bytes);
    test.number("reserve_us_" + name, median(each.reserve));
    test.number("create_us_" + name, median(each.create));
    test.number("map_us_" + name, median(each.map));
    test.number("set_access_us_" + name, median(each.allow));
    test.number("unmap_us_" + name, median(each.unmap));
    test.number("release_us_" + name, median(each.release));
    test.number("address_free_us_" + name, median(each.address_free));
  }
  test.note("Medians of one call for one handle that is created, mapped, unmapped and released before the next one.");
}

void many_mappings(Test &test) {
  constexpr std::size_t kCount = 256;
  if (!fits(kCount * kGranule)) skip("not enough free memory");
  const Handles handles(kGranule, kCount);
  Range range(kCount * kGranule);
  const auto map_all = [&] {
    for (std::size_t i = 0; i < kCount; ++i) must(cuMemMap(range.at(i * kGranule), kGranule, 0, handles[i], 0));
  };
  for (const char *order : {"first", "second"}) {
    const std::string suffix = std::string("_us_") + order;
    map_all();
    test.number("set_access_256_in_one_call" + suffix, microseconds([&] { must(allow(range.at(), range.bytes())); }));
    test.number("set_access_256_again" + suffix, microseconds([&] { must(allow(range.at(), range.bytes())); }));
    test.number("unmap_256_in_one_call" + suffix, microseconds([&] { must(cuMemUnmap(range.at(), range.bytes())); }));
    map_all();
    test.number("set_access_256_in_256_calls" + suffix, microseconds([&] {
                  for (std::size_t i = 0; i < kCount; ++i) must(allow(range.at(i * kGranule), kGranule));
                }));
    test.number("unmap_256_in_256_calls" + suffix, microseconds([&] {
                  for (std::size_t i = 0; i < kCount; ++i) must(cuMemUnmap(range.at(i * kGranule), kGranule));
                }));
  }
  test.note("256 mappings of 2 MiB in one range; total times, measured twice.");
}

// Maps `bytes` out of handles of one size, and gives them back.
void preallocate(Test &test, std::size_t handle_bytes, std::size_t bytes) {
  const std::size_t count = bytes / handle_bytes;
  if (count == 0) return;
  const std::string name = size_name(handle_bytes);
  const CUmemAllocationProp memory = device_memory();
  std::vector<CUmemGenericAllocationHandle> all(count);
  const Range range(count * handle_bytes);
  const auto ms = [&](const char *what, const std::function<void()> &act) {
    const double value = microseconds(act) / 1000;
    test.number(std::string(what) + "_ms_" + name, value);
    return value;
  };
  double total = ms("create", [&] {
    for (auto &handle : all) must(cuMemCreate(&handle, handle_bytes, &memory, 0));
  });
  total += ms("map", [&] {
    for (std::size_t i = 0; i < count; ++i) must(cuMemMap(range.at(i * handle_bytes), handle_bytes, 0, all[i], 0));
  });
  total += ms("set_access_in_one_call", [&] { must(allow(range.at(), range.bytes())); });
  test.number("bytes_" + name, range.bytes());
  test.number("total_ms_" + name, total);
  test.number("total_ms_for_60GiB_" + name,
              total * static_cast<double>(60 * kGiB) / static_cast<double>(range.bytes()));
  ms("unmap_in_one_call", [&] { must(cuMemUnmap(range.at(), range.bytes())); });
  ms("release", [&] {
    for (const auto handle : all) must(cuMemRelease(handle));
  });
}

void preallocation(Test &test) {
  const std::size_t bytes = std::min(60 * kGiB, free_bytes() / kShareAtMost * (kShareAtMost - 1));
  preallocate(test, kGranule, std::min(bytes, 8 * kGiB));
  preallocate(test, 32 * kMiB, bytes);
  preallocate(test, kGiB, bytes);
  CUdeviceptr block = 0;
  test.number("bytes_plain", bytes);
  test.number("alloc_ms_plain", microseconds([&] { must(cuMemAlloc(&block, bytes)); }) / 1000);
  test.number("free_ms_plain", microseconds([&] { must(cuMemFree(block)); }) / 1000);
  test.note("One range; 60 GiB or what 90 % of the free memory allows, with handles of 2 MiB 8 GiB at most.");
}

void granularity(Test &test) {
  CUmemAllocationProp memory = device_memory();
  const auto ask = [&](const std::string &name) {
    std::size_t minimum = 0, recommended = 0;
    must(cuMemGetAllocationGranularity(&minimum, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    must(cuMemGetAllocationGranularity(&recommended, &memory, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    test.number("minimum_bytes" + name, minimum);
    test.number("recommended_bytes" + name, recommended);
  };
  ask("");
  memory.allocFlags.gpuDirectRDMACapable = 1;
  ask("_rdma");
  memory.allocFlags.gpuDirectRDMACapable = 0;
  memory.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ask("_file_descriptor");
  test.note("What cuMemGetAllocationGranularity answers for memory of the device.");
}

// What the check of a first granule consists of: the first time, and the median of later ones.
void check(Test &test) {
  std::vector<double> create, copies, destroy, alias, unmap;
  Handles handles(kGranule, 1);
  CUdeviceptr address = 0, other = 0;
  must(cuMemAddressReserve(&address, kGranule, 0, 0, 0));
  must(cuMemAddressReserve(&other, kGranule, 0, 0, 0));
  must(cuMemMap(address, kGranule, 0, handles[0], 0));
  must(allow(address, kGranule));
  for (int i = 0; i < 20; ++i) {
    CUstream stream = nullptr;
    std::uint64_t word = 1, back = 0;
    create.push_back(microseconds([&] { must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); }));
    copies.push_back(microseconds([&] {
      must(cuMemcpyHtoDAsync(address, &word, sizeof(word), stream));
      must(cuMemcpyDtoHAsync(&back, address, sizeof(back), stream));
      must(cuStreamSynchronize(stream));
    }));
    destroy.push_back(microseconds([&] { must(cuStreamDestroy(stream)); }));
    alias.push_back(microseconds([&] { must(cuMemMap(other, kGranule, 0, handles[0], 0)); }));
    unmap.push_back(microseconds([&] { must(cuMemUnmap(other, kGranule)); }));
  }
  const auto report = [&](const std::string &name, const std::vector<double> &times) {
    test.number("first_us_" + name, times.front());
    test.number("us_" + name, median(times));
  };
  report("stream_create", create);
  report("two_copies_of_8_bytes", copies);
  report("stream_destroy", destroy);
  report("map_without_access", alias);
  report("unmap_without_access", unmap);
  must(cuMemUnmap(address, kGranule));
  must(cuMemAddressFree(address, kGranule));
  must(cuMemAddressFree(other, kGranule));
}

}  // namespace

int main() {
  return question::run({{"plain", plain},
                        {"handles", handles},
                        {"many_mappings", many_mappings},
                        {"preallocation", preallocation},
                        {"granularity", granularity},
                        {"check", check}});
}
