// What does the driver say about an address in the middle of a stitched range, of a plain block, of stream-ordered
// memory and of managed memory: pointer attributes, address range, allocation handle, legacy IPC, DMA-BUF and access?
#include <unistd.h>

#include <iterator>

#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kBytes = 4 * kGranule, kOffset = kGranule + 4096;

struct Attribute {
  CUpointer_attribute number;
  const char *name;
};

// As in cuda.h of CUDA 13.0; the simulated driver's does not have it.
constexpr auto kIsDecompressCapable = static_cast<CUpointer_attribute>(21);
using HandleForRange = decltype(cuMemGetHandleForAddressRange);

// Values that are addresses or identities differ from run to run; they are compared below instead.
constexpr Attribute kAttributes[] = {
    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "memory_type"},
    {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "sync_memops"},
    {CU_POINTER_ATTRIBUTE_IS_MANAGED, "is_managed"},
    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "device_ordinal"},
    {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, "is_legacy_ipc_capable"},
    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, "range_size"},
    {CU_POINTER_ATTRIBUTE_MAPPED, "mapped"},
    {CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, "allowed_handle_types"},
    {CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, "is_rdma_capable"},
    {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, "access_flags"},
    {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, "mapping_size"},
    {kIsDecompressCapable, "is_decompress_capable"},
};

long long small_value(std::uint64_t value, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return static_cast<long long>(value);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return static_cast<long long>(value & 0xff);  // the driver may write one byte only
    default:
      return static_cast<int>(value);
  }
}

void describe_pointers(Test &test, CUdeviceptr base, CUdeviceptr address) {
  const auto ask = [&](CUpointer_attribute attribute, CUdeviceptr at, const char *name) {
    std::uint64_t value = 0;
    const CUresult code = cuPointerGetAttribute(&value, attribute, at);
    if (code != CUDA_SUCCESS) test.code(std::string(name) + "_code", code);
    return value;
  };
  CUcontext current = nullptr;
  must(cuCtxGetCurrent(&current));
  const auto context = ask(CU_POINTER_ATTRIBUTE_CONTEXT, address, "context");
  test.yes("context_is_null", context == 0);
  test.yes("context_is_current", context == reinterpret_cast<std::uint64_t>(current));
  test.yes("device_pointer_is_the_address",
           ask(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address, "device_pointer") == address);
  test.yes("host_pointer_is_null", ask(CU_POINTER_ATTRIBUTE_HOST_POINTER, address, "host_pointer") == 0);
  const auto distance = [&](CUpointer_attribute attribute, const char *name) {
    const auto start = ask(attribute, address, name);
    if (start != 0) test.number(std::string(name) + "_to_address", address - start);
  };
  distance(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "range_start");
  distance(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, "mapping_start");
  const auto same = [&](CUpointer_attribute attribute, const char *name) {
    test.yes(std::string(name) + "_is_that_of_the_base", ask(attribute, base, name) == ask(attribute, address, name));
    test.yes(std::string(name) + "_is_null", ask(attribute, address, name) == 0);
  };
  same(CU_POINTER_ATTRIBUTE_BUFFER_ID, "buffer_id");
  same(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, "memory_block_id");
  same(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, "mempool_handle");
}

// All of kAttributes in one call, which answers "success" for those that it does not know.
void describe_at_once(Test &test, CUdeviceptr address) {
  CUpointer_attribute wanted[std::size(kAttributes)] = {};
  std::uint64_t values[std::size(kAttributes)] = {};
  void *places[std::size(kAttributes)] = {};
  for (std::size_t i = 0; i < std::size(kAttributes); ++i) {
    wanted[i] = kAttributes[i].number;
    places[i] = &values[i];
  }
  const CUresult code = cuPointerGetAttributes(static_cast<unsigned>(std::size(kAttributes)), wanted, places, address);
  test.code("all_at_once_code", code);
}

void describe(Test &test, CUdeviceptr base, std::size_t offset) {
  const CUdeviceptr address = base + offset;
  describe_at_once(test, address);
  for (const Attribute &attribute : kAttributes) {
    std::uint64_t value = 0;
    const CUresult code = cuPointerGetAttribute(&value, attribute.number, address);
    if (code != CUDA_SUCCESS) {
      test.code(std::string(attribute.name) + "_code", code);
    } else {
      test.number(attribute.name, small_value(value, attribute.number));
    }
  }
  describe_pointers(test, base, address);
  const unsigned on = 1;
  test.code("set_sync_memops_code", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address));
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  const CUresult range = cuMemGetAddressRange(&start, &bytes, address);
  test.code("address_range_code", range);
  if (range == CUDA_SUCCESS) {
    test.number("address_range_start_to_address", address - start);
    test.number("address_range_bytes", bytes);
  }
  CUmemGenericAllocationHandle handle = 0;
  const CUresult retained = cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(address));
  test.code("retain_handle_code", retained);
  if (retained == CUDA_SUCCESS) cuMemRelease(handle);
  CUipcMemHandle shared = {};
  test.code("ipc_handle_code", cuIpcGetMemHandle(&shared, address));
  unsigned long long flags = 0;
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  test.code("get_access_code", cuMemGetAccess(&flags, &here, address));
  test.number("access", flags);
}

// The file descriptor is for the whole range, or for a part in its middle.
void describe_dma_buf(Test &test, CUdeviceptr base) {
  auto *const handle_for_range = reinterpret_cast<HandleForRange *>(export_of("cuMemGetHandleForAddressRange"));
  const auto ask = [&](const std::string &name, std::size_t offset, std::size_t bytes) {
    int file = -1;
    const CUresult code = handle_for_range(&file, base + offset, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    test.code("dma_buf_" + name + "_code", code);
    if (file >= 0) close(file);
  };
  ask("of_one_granule", 0, kGranule);
  ask("of_all", 0, kBytes);
  ask("of_a_part_over_a_boundary", kGranule - 64 * kKiB, 128 * kKiB);
}

void plain(Test &test) {
  Cleanup cleanup;
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, kBytes));
  cleanup.add([block] { cuMemFree(block); });
  describe(test, block, kOffset);
  describe_dma_buf(test, block);
  test.note("An address inside a block of cuMemAlloc.");
}

void stitched(Test &test) {
  const Stitched range(kBytes / kGranule);
  describe(test, range.at(), kOffset);
  describe_dma_buf(test, range.at());
  test.note("An address in the second granule of a range of 4 handles.");
}

void for_rdma(Test &test) {
  CUmemAllocationProp memory = device_memory();
  memory.allocFlags.gpuDirectRDMACapable = 1;
  CUmemGenericAllocationHandle handle = 0;
  must(cuMemCreate(&handle, kBytes, &memory, 0));
  const Range range(kBytes);
  must(cuMemMap(range.at(), kBytes, 0, handle, 0));
  must(allow(range.at(), kBytes));
  describe(test, range.at(), kOffset);
  describe_dma_buf(test, range.at());
  must(cuMemUnmap(range.at(), kBytes));
  must(cuMemRelease(handle));
  test.note("One handle of 8 MiB that was created for GPUDirect RDMA.");
}

void pooled(Test &test) {
  CUdeviceptr block = 0;
  must(cuMemAllocAsync(&block, kBytes, CU_STREAM_LEGACY));
  must(cuStreamSynchronize(CU_STREAM_LEGACY));
  Cleanup cleanup;
  cleanup.add([block] { cuMemFree(block); });
  describe(test, block, kOffset);
  describe_dma_buf(test, block);
  test.note("An address inside a block of cuMemAllocAsync.");
}

void managed(Test &test) {
  CUdeviceptr block = 0;
  must(cuMemAllocManaged(&block, kBytes, CU_MEM_ATTACH_GLOBAL));
  Cleanup cleanup;
  cleanup.add([block] { cuMemFree(block); });
  describe(test, block, kOffset);
  test.note("An address inside a block of cuMemAllocManaged.");
}

void reserved(Test &test) {
  const Range range(kBytes);
  describe(test, range.at(), kOffset);
  test.note("An address in a reserved range in which nothing is mapped.");
}

void device(Test &test) {
  const auto ask = [&](const char *name, CUdevice_attribute attribute) {
    int value = -1;
    const CUresult code = cuDeviceGetAttribute(&value, attribute, 0);
    code == CUDA_SUCCESS ? test.number(name, value) : test.code(std::string(name) + "_code", code);
  };
  ask("virtual_memory_management", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  ask("file_descriptors", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  ask("fabric_handles", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
  ask("memory_pools", CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  ask("mempool_handle_types", CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
  ask("rdma", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
  ask("rdma_of_mapped_memory", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
  ask("dma_buf", CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
  ask("compression", CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED);
  ask("deferred_arrays", CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
  ask("sparse_arrays", CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
  ask("integrated", CU_DEVICE_ATTRIBUTE_INTEGRATED);
  ask("pageable_memory_access", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  ask("concurrent_managed_access", CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  std::size_t total = 0;
  must(cuDeviceTotalMem(&total, 0));
  test.number("total_bytes", total);
  test.number("free_bytes", free_bytes());
  test.note("What the device says about itself.");
}

}  // namespace

int main() {
  return question::run({{"device", device},
                        {"plain", plain},
                        {"stitched", stitched},
                        {"for_rdma", for_rdma},
                        {"pooled", pooled},
                        {"managed", managed},
                        {"reserved", reserved}});
}
