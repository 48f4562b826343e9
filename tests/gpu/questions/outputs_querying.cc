// What do the calls that query memory, export and import it do to their outputs where
// they are refused? As outputs_allocating, for the calls that hand out what exists.
#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/outputs.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr int kNoDevice = 99;
constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr auto kBadType = static_cast<CUmemAllocationHandleType>(0x40);
constexpr auto kUnknown = static_cast<CUpointer_attribute>(31);
using Fabric = std::array<unsigned char, 64>;

// Addresses of every kind.
struct Scene : Stage {
  Scene() {
    must(cuMemAlloc(&block, 4 * kMiB));
    must(cuMemAllocAsync(&pooled, kMiB, idle));
    must(cuStreamSynchronize(idle));
    must(cuMemAllocHost(&pinned, kMiB));
    cuMemAllocManaged(&managed, kMiB, CU_MEM_ATTACH_GLOBAL);
    mapped.map(0, handle);
    must(allow(mapped.at(), mapped.bytes()));
    CUmemAllocationProp memory = device_memory();
    memory.requestedHandleTypes = kFile;
    if (cuMemCreate(&shareable, kGranule, &memory, 0) != CUDA_SUCCESS) shareable = 0;
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    must(cuMemPoolCreate(&pool, &props));
    props.handleTypes = kFile;
    if (cuMemPoolCreate(&shared_pool, &props) != CUDA_SUCCESS) shared_pool = nullptr;
    if (shared_pool != nullptr) must(cuMemAllocFromPoolAsync(&shared_block, kMiB, shared_pool, idle));
    must(cuStreamSynchronize(idle));
    // Last, so that nothing else gets its address.
    must(cuMemAlloc(&freed, 64 * kMiB));
    must(cuMemFree(freed));
  }

  CUdeviceptr block = 0, pooled = 0, managed = 0, freed = 0, shared_block = 0;
  Handles handle{kGranule, 1};
  Range mapped{kGranule}, empty{kGranule};
  CUmemGenericAllocationHandle shareable = 0;
  CUmemoryPool pool = nullptr, shared_pool = nullptr;
  void *pinned = nullptr;
  unsigned on_host = 0;
};

struct Place {
  const char *way;
  CUdeviceptr (*address)(Scene &);
};

CUdeviceptr host_address(const void *pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

const Place kPlaces[] = {
    {"valid", [](Scene &s) { return s.block; }},
    {"inside_a_block", [](Scene &s) { return s.block + kMiB; }},
    {"mapped_memory", [](Scene &s) { return s.mapped.at(); }},
    {"pooled_memory", [](Scene &s) { return s.pooled; }},
    {"managed_memory", [](Scene &s) { return s.managed; }},
    {"pinned_memory", [](Scene &s) { return host_address(s.pinned); }},
    {"host_memory", [](Scene &s) { return host_address(&s.on_host); }},
    {"a_reserved_range", [](Scene &s) { return s.empty.at(); }},
    {"a_freed_block", [](Scene &s) { return s.freed; }},
    {"null", [](Scene &) { return CUdeviceptr{0}; }},
    {"no_address", [](Scene &) { return CUdeviceptr{0x1000}; }},
};

// A row for each kind of address; a valid one, null and one of the host are crossed.
void add_places(Table<Scene> &table, const std::string &call,
                const std::function<CUresult(Scene &, Outputs &, CUdeviceptr)> &act) {
  for (const Place &place : kPlaces) {
    const std::string way = place.way;
    const bool crossed = way == "valid" || way == "null" || way == "host_memory";
    const auto address = place.address;
    table.push_back({call, way, crossed ? Crossed::kCalls : Crossed::kNot,
                     [=](Scene &s, Outputs &o) { return act(s, o, address(s)); }});
  }
}

Table<Scene> memory() {
  Table<Scene> table;
  table.push_back({"cuMemGetInfo", "valid", Crossed::kCalls, [](Scene &, Outputs &o) {
                     auto *const free = o.add<std::size_t>("free");
                     return cuMemGetInfo(free, o.add<std::size_t>("total"));
                   }});
  for (const int device : {0, kNoDevice, -1}) {
    const char *const way = device == 0 ? "valid" : device < 0 ? "negative_device" : "no_such_device";
    table.push_back({"cuDeviceTotalMem", way, Crossed::kCalls,
                     [=](Scene &, Outputs &o) { return cuDeviceTotalMem(o.add<std::size_t>("bytes"), device); }});
  }
  // The exports of CUDA 2.0. No current header has them under their own name.
  table.push_back({"cuMemGetInfo_of_32_bits", "valid", Crossed::kCalls, [](Scene &, Outputs &o) {
                     using Call = CUresult (*)(unsigned *, unsigned *);
                     auto *const free = o.add<unsigned>("free");
                     return reinterpret_cast<Call>(export_of("cuMemGetInfo"))(free, o.add<unsigned>("total"));
                   }});
  table.push_back({"cuDeviceTotalMem_of_32_bits", "valid", Crossed::kCalls, [](Scene &, Outputs &o) {
                     using Call = CUresult (*)(unsigned *, CUdevice);
                     return reinterpret_cast<Call>(export_of("cuDeviceTotalMem"))(o.add<unsigned>("bytes"), 0);
                   }});
  add_places(table, "cuMemGetAddressRange", [](Scene &, Outputs &o, CUdeviceptr address) {
    auto *const base = o.add<CUdeviceptr>("pbase");
    return cuMemGetAddressRange(base, o.add<std::size_t>("psize"), address);
  });
  add_places(table, "cuMemRetainAllocationHandle", [](Scene &, Outputs &o, CUdeviceptr address) {
    return cuMemRetainAllocationHandle(o.add<CUmemGenericAllocationHandle>("handle"),
                                       reinterpret_cast<void *>(address));
  });
  add_places(table, "cuMemGetAccess", [](Scene &, Outputs &o, CUdeviceptr address) {
    const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return cuMemGetAccess(o.add<unsigned long long>("flags"), &here, address);
  });
  const auto in_pool = [&](const char *way, Crossed crossed, int attribute, bool without) {
    table.push_back({"cuMemPoolGetAttribute", way, crossed, [=](Scene &s, Outputs &o) {
                       return cuMemPoolGetAttribute(without ? nullptr : s.pool,
                                                    static_cast<CUmemPool_attribute>(attribute),
                                                    o.add<cuuint64_t>("value"));
                     }});
  };
  in_pool("valid", Crossed::kCalls, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, false);
  in_pool("bad_attribute", Crossed::kCalls, 15, false);
  in_pool("no_pool", Crossed::kNot, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, true);
  const auto access = [&](const char *way, Crossed crossed, CUmemLocation location) {
    table.push_back({"cuMemPoolGetAccess", way, crossed, [=](Scene &s, Outputs &o) {
                       CUmemLocation place = location;
                       return cuMemPoolGetAccess(o.add<CUmemAccess_flags>("flags"), s.pool, &place);
                     }});
  };
  access("valid", Crossed::kCalls, {CU_MEM_LOCATION_TYPE_DEVICE, 0});
  access("no_such_device", Crossed::kNot, {CU_MEM_LOCATION_TYPE_DEVICE, kNoDevice});
  access("no_location", Crossed::kNot, {CU_MEM_LOCATION_TYPE_INVALID, 0});
  return table;
}

struct Attribute {
  CUpointer_attribute number;
  const char *name;
  std::size_t bytes;
};

constexpr Attribute kAttributes[] = {
    {CU_POINTER_ATTRIBUTE_CONTEXT, "context", 8},
    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "memory_type", 4},
    {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, "device_pointer", 8},
    {CU_POINTER_ATTRIBUTE_HOST_POINTER, "host_pointer", 8},
    {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "sync_memops", 4},
    {CU_POINTER_ATTRIBUTE_BUFFER_ID, "buffer_id", 8},
    {CU_POINTER_ATTRIBUTE_IS_MANAGED, "is_managed", 4},
    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "device_ordinal", 4},
    {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "range_start", 8},
    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, "range_size", 8},
    {CU_POINTER_ATTRIBUTE_MAPPED, "mapped", 4},
    {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, "access_flags", 8},
    {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, "mempool_handle", 8},
    {kUnknown, "unknown", 8},
};

// The driver writes what it has; four bytes are compared where it writes no more than that.
CUresult ask_one(Outputs &outputs, const Attribute &attribute, CUdeviceptr address) {
  void *const place = attribute.bytes == 4 ? static_cast<void *>(outputs.add<unsigned>("data"))
                                           : static_cast<void *>(outputs.add<std::uint64_t>("data"));
  return cuPointerGetAttribute(place, attribute.number, address);
}

Table<Scene> pointers() {
  Table<Scene> table;
  for (const Attribute &attribute : kAttributes) {
    for (const Place &place : kPlaces) {
      const auto address = place.address;
      const bool crossed = attribute.number == CU_POINTER_ATTRIBUTE_MEMORY_TYPE && address == kPlaces[0].address;
      table.push_back({std::string("cuPointerGetAttribute_") + attribute.name, place.way,
                       crossed ? Crossed::kCalls : Crossed::kNot,
                       [=](Scene &s, Outputs &o) { return ask_one(o, attribute, address(s)); }});
    }
  }
  const auto several = [&](const std::string &way_of, unsigned count, int last) {
    for (const Place &place : kPlaces) {
      const auto address = place.address;
      table.push_back({"cuPointerGetAttributes", place.way + way_of, Crossed::kNot, [=](Scene &s, Outputs &o) {
                         CUpointer_attribute wanted[] = {
                             CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                             CU_POINTER_ATTRIBUTE_RANGE_SIZE, static_cast<CUpointer_attribute>(last)};
                         void *places[] = {o.add<unsigned>("memory_type"), o.add<CUdeviceptr>("device_pointer"),
                                           o.add<std::size_t>("range_size"), o.add<std::uint64_t>("last")};
                         return cuPointerGetAttributes(count, wanted, places, address(s));
                       }});
    }
  };
  several("", 4, CU_POINTER_ATTRIBUTE_BUFFER_ID);
  several("_and_an_unknown_attribute", 4, kUnknown);
  several("_and_no_attributes", 0, CU_POINTER_ATTRIBUTE_BUFFER_ID);
  return table;
}

// The descriptor of an export; -1 where there is none.
int exported(CUmemGenericAllocationHandle handle) {
  int file = -1;
  if (handle == 0 || cuMemExportToShareableHandle(&file, handle, kFile, 0) != CUDA_SUCCESS) skip("nothing to export");
  return file;
}

int exported(CUmemoryPool pool) {
  int file = -1;
  if (pool == nullptr || cuMemPoolExportToShareableHandle(&file, pool, kFile, 0) != CUDA_SUCCESS) {
    skip("no pool to export");
  }
  return file;
}

void *as_handle(int file) {
  return reinterpret_cast<void *>(static_cast<std::intptr_t>(file));
}

void add_ipc(Table<Scene> &table) {
  add_places(table, "cuIpcGetMemHandle", [](Scene &, Outputs &o, CUdeviceptr address) {
    return cuIpcGetMemHandle(o.add<CUipcMemHandle>("pHandle"), address);
  });
  const auto open = [&](const char *way, Crossed crossed, bool own, int byte, unsigned flags) {
    table.push_back({"cuIpcOpenMemHandle", way, crossed, [=](Scene &s, Outputs &o) {
                       CUipcMemHandle handle = {};
                       std::memset(&handle, byte, sizeof handle);
                       if (own && cuIpcGetMemHandle(&handle, s.block) != CUDA_SUCCESS) skip("no handle to open");
                       return cuIpcOpenMemHandle(o.add<CUdeviceptr>("pdptr"), handle, flags);
                     }});
  };
  open("of_this_process", Crossed::kNot, true, 0, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  open("of_this_process_with_bad_flags", Crossed::kNot, true, 0, 0x80);
  open("zeroes", Crossed::kCalls, false, 0, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  open("zeroes_with_no_flags", Crossed::kNot, false, 0, 0);
  open("nonsense", Crossed::kNot, false, 0x33, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

template <class Exported>
void add_export(Table<Scene> &table, const std::string &call, const char *way, Crossed crossed,
                const std::function<CUresult(Scene &, Exported *)> &act) {
  table.push_back(
      {call, way, crossed, [=](Scene &s, Outputs &o) { return act(s, o.add<Exported>("shareableHandle")); }});
}

void add_handles(Table<Scene> &table) {
  const std::string out = "cuMemExportToShareableHandle", in = "cuMemImportFromShareableHandle";
  add_export<int>(table, out, "valid", Crossed::kCalls, [](Scene &s, int *file) {
    return s.shareable == 0 ? CUDA_ERROR_NOT_SUPPORTED : cuMemExportToShareableHandle(file, s.shareable, kFile, 0);
  });
  add_export<int>(table, out, "not_made_for_it", Crossed::kCalls,
                  [](Scene &s, int *file) { return cuMemExportToShareableHandle(file, s.handle[0], kFile, 0); });
  add_export<int>(table, out, "no_type", Crossed::kNot, [](Scene &s, int *file) {
    return cuMemExportToShareableHandle(file, s.handle[0], CU_MEM_HANDLE_TYPE_NONE, 0);
  });
  add_export<int>(table, out, "bad_type", Crossed::kNot,
                  [](Scene &s, int *file) { return cuMemExportToShareableHandle(file, s.handle[0], kBadType, 0); });
  add_export<int>(table, out, "bad_flags", Crossed::kNot,
                  [](Scene &s, int *file) { return cuMemExportToShareableHandle(file, s.shareable, kFile, 0x80); });
  add_export<Fabric>(table, out, "for_a_fabric", Crossed::kNot, [](Scene &s, Fabric *fabric) {
    return cuMemExportToShareableHandle(fabric, s.handle[0], CU_MEM_HANDLE_TYPE_FABRIC, 0);
  });
  const auto import = [&](const char *way, Crossed crossed, const std::function<int(Scene &)> &file,
                          CUmemAllocationHandleType type) {
    table.push_back({in, way, crossed, [=](Scene &s, Outputs &o) {
                       const int opened = file(s);
                       const CUresult code = cuMemImportFromShareableHandle(
                           o.add<CUmemGenericAllocationHandle>("handle"), as_handle(opened), type);
                       if (opened >= 0) close(opened);
                       return code;
                     }});
  };
  const auto null_device = [](Scene &) { return open("/dev/null", O_RDWR | O_CLOEXEC); };
  import("valid", Crossed::kCalls, [](Scene &s) { return exported(s.shareable);
}, kFile);
  import("bad_type", Crossed::kNot, [](Scene &s) { return exported(s.shareable);
  }  // namespace
, kBadType);
import("another_file", Crossed::kCalls, null_device, kFile);
  import("no_file", Crossed::kCalls, [](Scene &) { return -1;
  }, kFile);
  }

  void add_pools(Table<Scene> &table) {
    const std::string out = "cuMemPoolExportToShareableHandle", in = "cuMemPoolImportFromShareableHandle";
    add_export<int>(table, out, "valid", Crossed::kCalls, [](Scene &s, int *file) {
      if (s.shared_pool == nullptr) skip("no pool to export");
      return cuMemPoolExportToShareableHandle(file, s.shared_pool, kFile, 0);
    });
    add_export<int>(table, out, "not_made_for_it", Crossed::kCalls,
                    [](Scene &s, int *file) { return cuMemPoolExportToShareableHandle(file, s.pool, kFile, 0); });
    add_export<int>(table, out, "bad_type", Crossed::kNot,
                    [](Scene &s, int *file) { return cuMemPoolExportToShareableHandle(file, s.pool, kBadType, 0); });
    add_export<int>(table, out, "no_pool", Crossed::kNot,
                    [](Scene &, int *file) { return cuMemPoolExportToShareableHandle(file, nullptr, kFile, 0); });
    const auto import = [&](const char *way, Crossed crossed, const std::function<int(Scene &)> &file) {
      table.push_back({in, way, crossed, [=](Scene &s, Outputs &o) {
                         const int opened = file(s);
                         const CUresult code = cuMemPoolImportFromShareableHandle(o.add<CUmemoryPool>("pool"),
                                                                                  as_handle(opened), kFile, 0);
                         if (opened >= 0) close(opened);
                         return code;
                       }});
    };
  import("valid", Crossed::kCalls, [](Scene &s) { return exported(s.shared_pool);
  });
  import("another_file", Crossed::kCalls, [](Scene &) { return open("/dev/null", O_RDWR | O_CLOEXEC);
  });
  import("no_file", Crossed::kNot, [](Scene &) { return -1;
  });
  add_places(table, "cuMemPoolExportPointer", [](Scene &, Outputs &o, CUdeviceptr address) {
    return cuMemPoolExportPointer(o.add<CUmemPoolPtrExportData>("shareData"), address);
  });
  table.push_back({"cuMemPoolExportPointer", "shared", Crossed::kCalls, [](Scene &s, Outputs &o) {
                     if (s.shared_block == 0) skip("no pool to export");
                     return cuMemPoolExportPointer(o.add<CUmemPoolPtrExportData>("shareData"), s.shared_block);
                   }});
  const auto import_pointer = [&](const char *way, Crossed crossed, CUmemoryPool Scene::*pool, int byte) {
    table.push_back({"cuMemPoolImportPointer", way, crossed, [=](Scene &s, Outputs &o) {
                       CUmemPoolPtrExportData data = {};
                       std::memset(&data, byte, sizeof data);
                       if (s.*pool == nullptr) skip("no pool to import from");
                       return cuMemPoolImportPointer(o.add<CUdeviceptr>("ptr"), s.*pool, &data);
                     }});
  };
  import_pointer("into_a_pool_of_this_process", Crossed::kCalls, &Scene::pool, 0);
  import_pointer("into_an_exported_pool", Crossed::kNot, &Scene::shared_pool, 0);
  import_pointer("nonsense", Crossed::kNot, &Scene::shared_pool, 0x33);
  }

  Table<Scene> exports() {
    Table<Scene> table;
    add_ipc(table);
    add_handles(table);
    add_pools(table);
    constexpr auto kDmaBuf = CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    add_places(table, "cuMemGetHandleForAddressRange", [](Scene &, Outputs &o, CUdeviceptr address) {
      return cuMemGetHandleForAddressRange(o.add<int>("handle"), address, kMiB, kDmaBuf, 0);
    });
    const auto dma_buf = [&](const char *way, std::size_t offset, std::size_t bytes, int type, unsigned flags) {
      table.push_back({"cuMemGetHandleForAddressRange", way, Crossed::kNot, [=](Scene &s, Outputs &o) {
                         return cuMemGetHandleForAddressRange(o.add<int>("handle"), s.block + offset, bytes,
                                                              static_cast<CUmemRangeHandleType>(type), flags);
                       }});
    };
    dma_buf("zero", 0, 0, kDmaBuf, 0);
    dma_buf("beyond_the_block", 0, 64 * kMiB, kDmaBuf, 0);
    dma_buf("not_of_a_page", 512, kMiB, kDmaBuf, 0);
    dma_buf("bad_type", 0, kMiB, 0x40, 0);
    dma_buf("bad_flags", 0, kMiB, kDmaBuf, 0x80);
    return table;
  }

  // Without a place for the output. What does not come back takes its process along.
  Table<Scene> no_output() {
    Table<Scene> table;
    const auto add = [&](const char *call, const char *way, const std::function<CUresult(Scene &)> &act) {
      table.push_back({call, way, Crossed::kNot, [=](Scene &s, Outputs &) { return act(s); }});
    };
    table.push_back({"cuMemGetInfo", "no_total", Crossed::kNot,
                     [](Scene &, Outputs &o) { return cuMemGetInfo(o.add<std::size_t>("free"), nullptr); }});
    table.push_back({"cuMemGetInfo", "no_free", Crossed::kNot,
                     [](Scene &, Outputs &o) { return cuMemGetInfo(nullptr, o.add<std::size_t>("total")); }});
    table.push_back({"cuMemGetAddressRange", "no_base", Crossed::kNot, [](Scene &s, Outputs &o) {
                       return cuMemGetAddressRange(nullptr, o.add<std::size_t>("psize"), s.block);
                     }});
    add("cuMemGetInfo", "no_output", [](Scene &) { return cuMemGetInfo(nullptr, nullptr); });
    add("cuDeviceTotalMem", "no_output", [](Scene &) { return cuDeviceTotalMem(nullptr, 0); });
    add("cuMemGetAddressRange", "no_output", [](Scene &s) { return cuMemGetAddressRange(nullptr, nullptr, s.block); });
    add("cuPointerGetAttribute", "no_output",
        [](Scene &s) { return cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, s.block); });
    add("cuMemRetainAllocationHandle", "no_output",
        [](Scene &s) { return cuMemRetainAllocationHandle(nullptr, reinterpret_cast<void *>(s.mapped.at())); });
    add("cuMemPoolGetAttribute", "no_output",
        [](Scene &s) { return cuMemPoolGetAttribute(s.pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, nullptr); });
    add("cuIpcGetMemHandle", "no_output", [](Scene &s) { return cuIpcGetMemHandle(nullptr, s.block); });
    add("cuIpcOpenMemHandle", "no_output", [](Scene &) { return cuIpcOpenMemHandle(nullptr, CUipcMemHandle{}, 1); });
    add("cuMemExportToShareableHandle", "no_output",
        [](Scene &s) { return cuMemExportToShareableHandle(nullptr, s.handle[0], kFile, 0); });
    add("cuMemExportToShareableHandle", "no_handle", [](Scene &) {
      int file = -1;
      return cuMemExportToShareableHandle(&file, 0, kFile, 0);
    });
    add("cuMemImportFromShareableHandle", "no_output",
        [](Scene &) { return cuMemImportFromShareableHandle(nullptr, as_handle(-1), kFile); });
    add("cuMemPoolExportToShareableHandle", "no_output",
        [](Scene &s) { return cuMemPoolExportToShareableHandle(nullptr, s.pool, kFile, 0); });
    add("cuMemPoolExportPointer", "no_output", [](Scene &s) { return cuMemPoolExportPointer(nullptr, s.pooled); });
    add("cuMemGetHandleForAddressRange", "no_output", [](Scene &s) {
      return cuMemGetHandleForAddressRange(nullptr, s.block, kMiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    });
    return table;
  }

  const Tables<Scene> &tables() {
    static const Tables<Scene> all = {
        {"memory", memory()}, {"pointers", pointers()}, {"exports", exports()}, {"no_output", no_output()}};
    return all;
  }

  void play(Test &test) {
    ask(test, tables().at(test.name()));
  }

  }  // namespace

  int main(int count, char **arguments) {
    return question::run_tables<Scene>(count, arguments, tables,
                                       {{"memory", play}, {"pointers", play}, {"exports", play}, {"no_output", play}});
  }
