// Physical memory for other handles and other processes: a descriptor of the file with its bytes, which can be sent to
// a process that sees the same device. Only the exporter is charged, while it references or maps the memory.
// Layer: vmm.h. Threads: any.
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
  std::uint64_t process;
  CUuuid device;  // zeros: memory of the host
  CUmemAllocationProp properties;
};

int descriptor_number(const void *os_handle) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
}

// The bytes and their owner; false: not a file of this simulator.
bool read_label(int file, Label *label, std::uint64_t *bytes) {
  struct stat status = {};
  if (::fstat(file, &status) != 0 || status.st_size < static_cast<off_t>(sizeof *label)) return false;
  *bytes = static_cast<std::uint64_t>(status.st_size) - sizeof *label;
  return ::pread(file, label, sizeof *label, static_cast<off_t>(*bytes)) == sizeof *label && label->magic == kMagic;
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

bool same_file(int one, int other) {
  struct stat first = {}, second = {};
  if (::fstat(one, &first) != 0 || ::fstat(other, &second) != 0) return false;
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

std::shared_ptr<PhysicalMemory> still_known(int file) {
  for (const auto &[number, handle] : driver().virtual_memory.handles) {
    if (handle.memory->own_file && same_file(handle.memory->file, file)) return handle.memory;
  }
  return nullptr;
}

}  // namespace

bool make_own_file(PhysicalMemory &memory) {
  Label label{kMagic, static_cast<std::uint64_t>(::getpid()), {}, memory.properties};
  if (!memory.on_host()) label.device = driver().devices[static_cast<std::size_t>(label.properties.location.id)].uuid;
  const int file = ::memfd_create("simcuda-exportable", MFD_CLOEXEC);
  if (file < 0) return false;
  memory.file = file;
  memory.own_file = true;
  return ::pwrite(file, &label, sizeof label, static_cast<off_t>(memory.bytes)) == sizeof label;
}

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags) {
  const Lock lock(driver().mutex);
  const MemoryHandle *const known = memory_handle(handle);
  if (shareableHandle == nullptr || known == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  if ((known->memory->properties.requestedHandleTypes & handleType) == 0) return CUDA_ERROR_INVALID_VALUE;
  const int descriptor = ::fcntl(known->memory->file, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  std::memcpy(shareableHandle, &descriptor, sizeof descriptor);
  return CUDA_SUCCESS;
}

// Always a new handle for the same memory. The caller keeps the descriptor.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                        CUmemAllocationHandleType shHandleType) {
  if (handle == nullptr || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  Label label = {};
  std::uint64_t bytes = 0;
  if (!read_label(descriptor_number(osHandle), &label, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  std::shared_ptr<PhysicalMemory> memory = still_known(descriptor_number(osHandle));
  if (memory == nullptr) {
    memory = std::make_shared<PhysicalMemory>();
    memory->properties = label.properties;
    memory->bytes = bytes;
    memory->id = driver().next_id++;
    if (!memory->on_host() && !find_ordinal(label.device, &memory->properties.location.id)) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    const bool ours = label.process == static_cast<std::uint64_t>(::getpid());  // and only the descriptor remained
    if (const CUresult error = ours ? charge(*memory) : CUDA_SUCCESS; error != CUDA_SUCCESS) return error;
    memory->file = ::fcntl(descriptor_number(osHandle), F_DUPFD_CLOEXEC, 0);
    if (memory->file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    memory->own_file = true;
  }
  *handle = add_handle(std::move(memory));
  return CUDA_SUCCESS;
}

}  // namespace simcuda
