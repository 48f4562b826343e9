// The rules of virtual memory management: parts of a handle, one handle at two addresses, fresh memory, what a handle
// costs, running out, mapping again while work runs, and mappings that several contexts of a device use.
#include <cstring>

#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

// What each call that maps less than, or other than, a whole handle answers. Undoes what succeeded.
void parts(Test &test) {
  constexpr std::size_t kWhole = 64 * kMiB;
  const Handles whole(kWhole, 1), small(kGranule, 2);
  const Range range(2 * kWhole);
  const auto map = [&](const std::string &name, CUdeviceptr at, std::size_t bytes, std::size_t offset,
                       CUmemGenericAllocationHandle handle) {
    const CUresult code = cuMemMap(at, bytes, offset, handle, 0);
    test.code("map_" + name + "_code", code);
    if (code == CUDA_SUCCESS) cuMemUnmap(at, bytes);
  };
  map("first_part", range.at(), kGranule, 0, whole[0]);
  map("part_at_an_offset", range.at(), kGranule, kGranule, whole[0]);
  map("offset_beyond_the_handle", range.at(), kGranule, kWhole, whole[0]);
  map("unaligned_address", range.at(kMiB), kGranule, 0, small[0]);
  map("less_than_a_granule", range.at(), kMiB, 0, small[0]);
  map("beyond_the_range", range.at(2 * kWhole - kGranule), kWhole, 0, whole[0]);
  must(cuMemMap(range.at(), kWhole, 0, whole[0], 0));
  map("onto_a_mapping", range.at(kGranule), kGranule, 0, small[0]);
  test.code("set_access_of_a_part_code", allow(range.at(kGranule), kGranule));
  test.code("set_access_of_less_than_a_granule_code", allow(range.at(), kMiB));
  test.code("set_access_with_a_hole_code", allow(range.at(), kWhole + kGranule));
  test.code("unmap_a_part_code", cuMemUnmap(range.at(kGranule), kGranule));
  test.code("free_the_range_while_mapped_code", cuMemAddressFree(range.at(), range.bytes()));
  test.code("unmap_with_a_hole_code", cuMemUnmap(range.at(), kWhole + kGranule));
  test.code("unmap_code", cuMemUnmap(range.at(), kWhole));
  test.code("unmap_nothing_code", cuMemUnmap(range.at(), kWhole));
  test.code("free_a_part_of_the_range_code", cuMemAddressFree(range.at(kWhole), kWhole));
  must(cuMemMap(range.at(), kGranule, 0, small[0], 0));
  must(cuMemMap(range.at(kGranule), kGranule, 0, small[1], 0));
  test.code("unmap_two_code", cuMemUnmap(range.at(), 2 * kGranule));
  test.note("Codes of mapping, permitting and unmapping what is not exactly one handle.");
}

void two_addresses(Test &test) {
  const Kernels kernels = load_kernels();
  const Handles handle;
  Range first(kGranule), second(kGranule);
  first.map(0, handle);
  const CUresult code = cuMemMap(second.at(), kGranule, 0, handle[0], 0);
  test.code("second_mapping_code", code);
  if (code != CUDA_SUCCESS) return test.note("A handle cannot be mapped at two addresses.");
  must(allow(first.at(), kGranule));
  must(allow(second.at(), kGranule));
  unsigned seen[4] = {};
  must(cuMemsetD32(first.at(), 0x11111111, kGranule / 4));
  must(cuMemcpyDtoH(&seen[0], second.at(kGranule - 4), 4));
  must(fill(kernels, second.at(), kGranule / 4, 5, CU_STREAM_LEGACY));
  must(copy(kernels, second.at(4), first.at(kMiB), 1, CU_STREAM_LEGACY));
  must(cuMemcpyDtoH(&seen[1], first.at(), 4));
  must(cuMemcpyDtoH(&seen[2], first.at(4), 4));
  must(cuMemUnmap(second.at(), kGranule));
  must(cuMemcpyDtoH(&seen[3], first.at(8), 4));
  test.yes("fill_is_seen_through_the_other", seen[0] == 0x11111111);
  test.yes("kernel_is_seen_through_the_other", seen[1] == 5 && seen[2] == 5 + kMiB / 4);
  test.yes("survives_the_unmapping_of_the_other", seen[3] == 7);
  test.note("One handle mapped at two addresses, written through one, read through the other.");
}

std::size_t words_not_zero(CUdeviceptr from, std::size_t bytes) {
  std::vector<unsigned> back(bytes / 4);
  must(cuMemcpyDtoH(back.data(), from, bytes));
  return bytes / 4 - static_cast<std::size_t>(std::count(back.begin(), back.end(), 0u));
}

void fresh_memory(Test &test) {
  constexpr std::size_t kBytes = 256 * kMiB;
  for (const std::size_t bytes : {kGranule, 64 * kMiB}) {
    std::size_t dirty = 0;
    for (int round = 0; round < 2; ++round) {
      const Handles handles(bytes, kBytes / bytes);
      Range range(kBytes);
      for (std::size_t i = 0; i < handles.count(); ++i) range.map(i * bytes, handles, i);
      must(allow(range.at(), kBytes));
      dirty = words_not_zero(range.at(), kBytes);
      must(cuMemsetD8(range.at(), 0xab, kBytes));
      must(cuCtxSynchronize());
    }
    test.number("words_not_zero_in_handles_of_" + size_name(bytes), dirty);
  }
  for (const std::size_t bytes : {4 * kKiB, kMiB, 64 * kMiB}) {
    std::size_t dirty = 0;
    for (int round = 0; round < 2; ++round) {
      CUdeviceptr block = 0;
      must(cuMemAlloc(&block, bytes));
      dirty = words_not_zero(block, bytes);
      must(cuMemsetD8(block, 0xab, bytes));
      must(cuMemFree(block));
    }
    test.number("words_not_zero_in_a_plain_block_of_" + size_name(bytes), dirty);
  }
  test.note("Memory that this process has filled, given back and obtained again: what is left of the old bytes.");
}

void device_cost(Test &test) {
  constexpr std::size_t kCount = 512;
  for (const std::size_t bytes : {kGranule, 32 * kMiB}) {
    const std::size_t count = bytes == kGranule ? kCount : kCount / 16, before = free_bytes();
    Handles handles(bytes, count);
    const std::size_t created = free_bytes();
    Range range(count * bytes);
    for (std::size_t i = 0; i < count; ++i) range.map(i * bytes, handles, i);
    must(allow(range.at(), range.bytes()));
    const std::size_t mapped = free_bytes();
    const std::string name = size_name(bytes);
    test.number("bytes_of_a_handle_of_" + name, static_cast<double>(before - created) / static_cast<double>(count));
    test.number("bytes_of_mapping_it_" + name,
                (static_cast<double>(created) - static_cast<double>(mapped)) / static_cast<double>(count));
    handles.release();
    test.number("bytes_back_while_still_mapped_" + name, free_bytes() - mapped);
  }
  test.note("cuMemGetInfo deltas of many handles, by handle.");
}

void out_of_memory(Test &test) {
  const CUmemAllocationProp memory = device_memory();
  const std::size_t before = free_bytes(), much = (before / kGranule + 512) * kGranule;
  CUmemGenericAllocationHandle handle = 0x5a5a;
  CUresult code = CUDA_SUCCESS;
  test.number("failing_create_us", microseconds([&] { code = cuMemCreate(&handle, much, &memory, 0); }));
  test.code("create_code", code);
  test.yes("handle_untouched", handle == 0x5a5a);
  test.number("bytes_missing_afterwards", before - free_bytes());
  CUdeviceptr block = 0x5a5a;
  test.number("failing_alloc_us", microseconds([&] { code = cuMemAlloc(&block, much); }));
  test.code("alloc_code", code);
  test.yes("address_untouched", block == 0x5a5a);
  test.number("bytes_missing_after_alloc", before - free_bytes());
  const Handles works;
  test.note("More than the device has, as one handle and as one block; a small handle afterwards still works.");
}

// Two handles take turns at one address, while an unrelated kernel runs and others write the neighbouring granules.
void remapping(Test &test) {
  constexpr std::size_t kGranules = 16;
  constexpr unsigned kTurns = 100;
  const Kernels kernels = load_kernels();
  Cleanup cleanup;
  CUstream streams[3] = {};
  for (CUstream &stream : streams) {
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    cleanup.add([stream] { cuStreamDestroy(stream); });
  }
  const Handles turning(kGranule, 2), staying(kGranule, kGranules);
  Range range((kGranules + 1) * kGranule);
  for (std::size_t i = 0; i < kGranules; ++i) range.map((i + 1) * kGranule, staying, i);
  must(allow(range.at(kGranule), kGranules * kGranule));
  CUdeviceptr seen = 0;
  must(cuMemAlloc(&seen, kTurns * 4));
  cleanup.add([seen] { cuMemFree(seen); });
  for (unsigned i = 0; i < 2; ++i) {
    range.map(0, turning, i);
    must(allow(range.at(), kGranule));
    must(cuMemsetD32(range.at(), 1000 + i, kGranule / 4));
    must(cuCtxSynchronize());
    range.unmap(0);
  }
  const Spin spin(kernels, streams[0], 1500);
  std::vector<double> turn_us;
  for (unsigned i = 0; i < kTurns; ++i) {
    must(fill(kernels, range.at(kGranule), kGranules * kGranule / 4, i, streams[1]));
    turn_us.push_back(microseconds([&] {
      range.map(0, turning, i % 2);
      must(allow(range.at(), kGranule));
    }));
    must(copy(kernels, seen + 4 * i, range.at(kMiB), 1, streams[2]));
    must(cuStreamSynchronize(streams[2]));
    turn_us.back() += microseconds([&] { range.unmap(0); });
  }
  test.yes("unrelated_kernel_still_runs", spin.running());
  must(cuStreamSynchronize(streams[1]));
  unsigned values[kTurns] = {}, wrong = 0, wrong_neighbours = 0;
  must(cuMemcpyDtoH(values, seen, sizeof values));
  for (unsigned i = 0; i < kTurns; ++i) wrong += values[i] != 1000 + i % 2;
  std::vector<unsigned> neighbours(kGranules * kGranule / 4);
  must(cuMemcpyDtoH(neighbours.data(), range.at(kGranule), kGranules * kGranule));
  for (unsigned i = 0; i < neighbours.size(); ++i) wrong_neighbours += neighbours[i] != kTurns - 1 + i;
  test.number("turns", kTurns);
  test.number("turn_us", median(turn_us));
  test.number("wrong_values", wrong);
  test.number("wrong_words_of_neighbours", wrong_neighbours);
  if (wrong + wrong_neighbours > 0)
    return test.fail("A kernel saw a handle that was no longer mapped, or lost writes.");
  test.note("Each kernel saw the handle mapped at the time of its launch; the neighbours kept their bytes.");
}

CUcontext new_context() {
  CUcontext context = nullptr;
  must(cuCtxCreate(&context, nullptr, 0, 0));
  return context;
}

// Last: if a mapping does die with a context, what touches it may end the process's other contexts too.
void contexts(Test &test) {
  CUcontext primary = nullptr;
  must(cuCtxGetCurrent(&primary));
  Cleanup cleanup;
  cleanup.add([primary] { cuCtxSetCurrent(primary); });
  const CUcontext maker = new_context(), user = new_context();
  must(cuCtxSetCurrent(maker));
  const Handles handle;
  Range range(kGranule);
  range.map(0, handle);
  must(allow(range.at(), kGranule));
  must(cuMemsetD32(range.at(), 7, kGranule / 4));
  must(cuCtxSynchronize());
  must(cuCtxSetCurrent(user));
  const Kernels kernels = load_kernels();
  unsigned word = 0;
  const auto use = [&](const std::string &when, unsigned expected) {
    test.code("copy_code_" + when, cuMemcpyDtoH(&word, range.at(kMiB), 4));
    test.yes("copy_is_right_" + when, word == expected);
    test.code("launch_code_" + when,
              fill(kernels, range.at(), kGranule / 4, 7u - static_cast<unsigned>(kMiB / 4), CU_STREAM_LEGACY));
    test.code("kernel_code_" + when, cuCtxSynchronize());
    word = 0;
    cuMemcpyDtoH(&word, range.at(kMiB), 4);
    test.yes("kernel_is_right_" + when, word == 7);
  };
  use("in_another_context", 7);
  test.code("destroy_code", cuCtxDestroy(maker));
  must(cuCtxSetCurrent(user));
  use("after_the_makers_end", 7);
  test.code("destroy_user_code", cuCtxDestroy(user));
  must(cuCtxSetCurrent(primary));
  word = 0;
  test.code("copy_code_in_the_primary_context", cuMemcpyDtoH(&word, range.at(kMiB), 4));
  test.yes("copy_is_right_in_the_primary_context", word == 7);
  test.note("A mapping made in one context, used in others of its device, before and after the end of the first.");
}

}  // namespace

int main() {
  return question::run({{"parts", parts},
                        {"two_addresses", two_addresses},
                        {"fresh_memory", fresh_memory},
                        {"device_cost", device_cost},
                        {"out_of_memory", out_of_memory},
                        {"remapping", remapping},
                        {"contexts", contexts}});
}
