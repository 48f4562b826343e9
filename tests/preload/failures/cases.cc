#include "cases.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

namespace failures {

CUcontext enter(CUdevice device) {
  CUcontext context = nullptr;
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  REQUIRE(cuCtxCreate_v2(&context, 0, device) == CUDA_SUCCESS);
  return context;
}

Memory memory() {
  Memory reported;
  REQUIRE(cuMemGetInfo_v2(&reported.free, &reported.total) == CUDA_SUCCESS);
  REQUIRE(reported.free <= reported.total);
  return reported;
}

unsigned long long held(CUdevice device) {
  simcuda_books books{};
  REQUIRE(simcuda_device_books(device, &books) == 0);
  return books.allocation_bytes + books.array_bytes + books.pool_bytes + books.physical_bytes;
}

CUdeviceptr take(size_t bytes) {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAlloc_v2(&address, bytes) == CUDA_SUCCESS);
  return address;
}

void refused(size_t bytes) {
  CUdeviceptr address = kBefore;
  REQUIRE(cuMemAlloc_v2(&address, bytes) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(address == 0);
}

void all_is_free(size_t limit) {
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(memory().free + kSlack >= limit);
  REQUIRE(cuMemFree_v2(take(limit - kSlack)) == CUDA_SUCCESS);
}

// The symbol table ends where the strings begin: every linker orders them so.
void *symbol_in_driver(const char *name) {
  const auto *driver = static_cast<const link_map *>(dlopen("libcuda.so.1", RTLD_NOW));
  REQUIRE(driver != nullptr);
  const ElfW(Sym) *symbols = nullptr;
  const char *strings = nullptr;
  for (const ElfW(Dyn) *entry = driver->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto place = reinterpret_cast<const void *>(entry->d_un.d_ptr);
    symbols = entry->d_tag == DT_SYMTAB ? static_cast<const ElfW(Sym) *>(place) : symbols;
    strings = entry->d_tag == DT_STRTAB ? static_cast<const char *>(place) : strings;
  }
  for (const ElfW(Sym) *symbol = symbols; static_cast<const void *>(symbol) < strings; ++symbol) {
    if (symbol->st_shndx != SHN_UNDEF && strcmp(strings + symbol->st_name, name) == 0) {
      return reinterpret_cast<void *>(driver->l_addr + symbol->st_value);
    }
  }
  FAIL("the driver has no " << name);
  return nullptr;
}

CUmemoryPool keeping_pool(CUdevice device) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool pool = nullptr;
  REQUIRE(cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
  cuuint64_t all = UINT64_MAX;
  REQUIRE(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all) == CUDA_SUCCESS);
  return pool;
}

CUresult make_physical(CUmemGenericAllocationHandle *handle, size_t bytes, CUdevice device) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return cuMemCreate(handle, bytes, &prop, 0);
}

}  // namespace failures
