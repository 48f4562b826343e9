// Physical memory for other handles and other processes: a descriptor of its label (memory_file.h), which can be sent
// to a process that sees the same device. Only the exporter is charged, while it references or maps the memory. Layer:
// vmm.h. Threads: any.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "implemented.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/vmm.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kMagic = 0x6d6d767563647573ull;

struct Label {
  std::uint64_t magic;
  std::uint64_t bytes;
  std::uint64_t released;  // by the exporter: the last process that holds it discards it
  CUuuid device;           // zeros: memory of the host
  CUmemAllocationProp properties;
};
static_assert(sizeof(Label) <= kLabelBytes);

int descriptor_number(const void *os_handle) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
}

// False: not a description that this simulator exported.
bool read_label(int file, std::uint64_t at, Label *label) {
  return ::pread(file, label, sizeof *label, static_cast<off_t>(at)) == sizeof *label && label->magic == kMagic;
}

bool write_label(const PhysicalMemory &memory, bool released) {
  Label label{kMagic, memory.bytes, released, {}, memory.properties};
  if (!memory.on_host()) label.device = driver().devices[static_cast<std::size_t>(label.properties.location.id)].uuid;
  return ::pwrite(memory.file->descriptor, &label, sizeof label, static_cast<off_t>(memory.label)) == sizeof label;
}

// This process's ordinal of the device, which may differ in the exporter.
bool find_ordinal(const CUuuid &uuid, int *ordinal) {
  for (const Device &device : driver().devices) {
    if (std::memcmp(&device.uuid, &uuid, sizeof uuid) != 0) continue;
    *ordinal = ordinal_of(device);
    return true;
  }
  return false;
}

std::shared_ptr<PhysicalMemory> still_known(const MemoryFile &file, std::uint64_t label) {
  for (const auto &[number, handle] : driver().virtual_memory.handles) {
    const PhysicalMemory &memory = *handle.memory;
    if (memory.labelled && memory.file.get() == &file && memory.label == label) return handle.memory;
  }
  return nullptr;
}

}  // namespace

// Both sides note first that they leave, and look then: the one that is last discards the bytes.
void leave_exportable(PhysicalMemory &memory) {
  if (memory.file == nullptr) return;  // it could not be made
  const bool ours = memory.file == own_memory_file();
  Label label = {};
  bool released = ours;
  if (ours && is_exported(*memory.file, memory.label)) (void)write_label(memory, true);
  if (memory.kept != nullptr) {
    drop_description(memory.kept);
    released = read_label(memory.file->descriptor, memory.label, &label) && label.released != 0;
  }
  if (released && !is_exported(*memory.file, memory.label)) {
    ::fallocate(memory.file->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(memory.label),
                static_cast<off_t>(kLabelBytes + memory.bytes));
  }
}

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags) {
  const Lock lock(driver().mutex);
  const MemoryHandle *const known = memory_handle(handle);
  if (shareableHandle == nullptr || known == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  if ((known->memory->properties.requestedHandleTypes & handleType) == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool labelled = write_label(*known->memory, false);
  const int descriptor = labelled ? export_description(*known->memory->file, known->memory->label) : -1;
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  std::memcpy(shareableHandle, &descriptor, sizeof descriptor);
  return CUDA_SUCCESS;
}

// Always a new handle for the same memory. The caller keeps the descriptor.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                        CUmemAllocationHandleType shHandleType) {
  if (handle == nullptr || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  const int exported = descriptor_number(osHandle);
  std::uint64_t at = 0;
  Label label = {};
  if (!position_of(exported, &at) || !read_label(exported, at, &label)) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  const MemoryFileRef file = memory_file_of(exported);
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  std::shared_ptr<PhysicalMemory> memory = still_known(*file, at);
  if (memory == nullptr) {
    memory = std::make_shared<PhysicalMemory>();
    memory->properties = label.properties;
    memory->bytes = label.bytes;
    memory->id = driver().next_id++;
    if (!memory->on_host() && !find_ordinal(label.device, &memory->properties.location.id)) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    const bool ours = file == own_memory_file();  // and only the descriptor remained
    if (const CUresult error = ours ? charge(*memory) : CUDA_SUCCESS; error != CUDA_SUCCESS) return error;
    memory->kept = ours ? nullptr : keep_description(exported, at);
    if (!ours && memory->kept == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    memory->file = file;
    memory->label = at;
    memory->offset = at + kLabelBytes;
    memory->labelled = true;
  }
  *handle = add_handle(std::move(memory));
  return CUDA_SUCCESS;
}

}  // namespace simcuda
