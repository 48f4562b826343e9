// What do the calls that export memory and import it do to their outputs where they are refused? As outputs_allocating,
// for the calls that hand out what exists.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "tests/gpu/questions/places.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

using Scene = Places;
constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr auto kBadType = static_cast<CUmemAllocationHandleType>(0x40);
using Fabric = std::array<unsigned char, 64>;

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
    static const Tables<Scene> all = {{"exports", exports()}, {"no_output", no_output()}};
    return all;
  }

  void play(Test &test) {
    ask(test, tables().at(test.name()));
  }

  }  // namespace

  int main(int count, char **arguments) {
    return question::run_tables<Scene>(count, arguments, tables, {{"exports", play}, {"no_output", play}});
  }
