#include "tests/simcuda/conformance/child_sharing.h"

#define __CUDA_API_VERSION_INTERNAL  // exports by their own names
#include <cuda.h>
#include <dlfcn.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr std::size_t kBytes = std::size_t{2} << 20;
constexpr unsigned char kFromParent = 7, kFromChild = 9;

#define DRIVER(symbol) reinterpret_cast<decltype(&symbol)>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), #symbol))

int fail(const char *what, CUresult result) {
  std::printf("%s: %d\n", what, static_cast<int>(result));
  return 1;
}

CUresult start() {
  if (const CUresult error = DRIVER(cuInit)(0); error != CUDA_SUCCESS) return error;
  CUcontext context = nullptr;
  return DRIVER(cuCtxCreate_v2)(&context, 0, 0);
}

CUresult map(CUmemGenericAllocationHandle handle, CUdeviceptr *address) {
  const CUmemAccessDesc all{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult result = DRIVER(cuMemAddressReserve)(address, kBytes, 0, 0, 0);
  if (result == CUDA_SUCCESS) result = DRIVER(cuMemMap)(*address, kBytes, 0, handle, 0);
  if (result == CUDA_SUCCESS) result = DRIVER(cuMemSetAccess)(*address, kBytes, &all, 1);
  return result;
}

bool all_are(CUdeviceptr address, unsigned char value) {
  static unsigned char bytes[kBytes];
  if (DRIVER(cuMemcpyDtoH_v2)(bytes, address, kBytes) != CUDA_SUCCESS) return false;
  return bytes[0] == value && std::memcmp(bytes, bytes + 1, kBytes - 1) == 0;
}

std::size_t used() {
  std::size_t free = 0, total = 0;
  DRIVER(cuMemGetInfo_v2)(&free, &total);
  return total - free;
}

// One descriptor, sent or received, with one byte.
bool pass(int socket, int *descriptor, bool out) {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof *descriptor)] = {};
  msghdr message = {};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr *const header = CMSG_FIRSTHDR(&message);
  if (!out) {
    if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == nullptr) return false;
    std::memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    return true;
  }
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof *descriptor);
  std::memcpy(CMSG_DATA(header), descriptor, sizeof *descriptor);
  return ::sendmsg(socket, &message, 0) == 1;
}

int take(int socket) {
  int descriptor = -1;
  if (!pass(socket, &descriptor, false)) return fail("no descriptor came", CUDA_ERROR_UNKNOWN);
  if (const CUresult error = start(); error != CUDA_SUCCESS) return fail("start", error);
  const std::size_t before = used();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  void *const shared = reinterpret_cast<void *>(std::intptr_t{descriptor});
  const CUresult imported =
      DRIVER(cuMemImportFromShareableHandle)(&handle, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (imported != CUDA_SUCCESS) return fail("import", imported);
  ::close(descriptor);
  if (const CUresult error = map(handle, &address); error != CUDA_SUCCESS) return fail("map", error);
  if (used() != before) return fail("the importer was charged", CUDA_ERROR_UNKNOWN);
  if (!all_are(address, kFromParent)) return fail("other bytes came", CUDA_ERROR_UNKNOWN);
  DRIVER(cuMemsetD8_v2)(address, kFromChild, kBytes);
  return static_cast<int>(DRIVER(cuCtxSynchronize)());
}

// Maps fresh memory with the parent's bytes, and exports it.
CUresult make(CUmemGenericAllocationHandle *handle, CUdeviceptr *address, int *descriptor) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUresult result = DRIVER(cuMemCreate)(handle, kBytes, &properties, 0);
  if (result == CUDA_SUCCESS) result = map(*handle, address);
  if (result == CUDA_SUCCESS) result = DRIVER(cuMemsetD8_v2)(*address, kFromParent, kBytes);
  if (result == CUDA_SUCCESS) result = DRIVER(cuCtxSynchronize)();
  const auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (result == CUDA_SUCCESS) result = DRIVER(cuMemExportToShareableHandle)(descriptor, *handle, type, 0);
  return result;
}

int give(int socket) {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return fail("start", error);
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  int descriptor = -1;
  if (const CUresult error = make(&handle, &address, &descriptor); error != CUDA_SUCCESS) return fail("export", error);
  int status = -1;
  if (!pass(socket, &descriptor, true) || ::wait(&status) < 0) return fail("no child", CUDA_ERROR_UNKNOWN);
  if (status != 0) return 1;
  if (!all_are(address, kFromChild)) return fail("other bytes came back", CUDA_ERROR_UNKNOWN);
  std::puts("shared");
  return 0;
}

// The exporter ends its own hold while the descriptor is under way.
int give_away(int socket) {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return fail("start", error);
  const std::size_t before = used();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  int descriptor = -1;
  CUresult result = make(&handle, &address, &descriptor);
  if (result != CUDA_SUCCESS) return fail("export", result);
  if (!pass(socket, &descriptor, true)) return fail("no child", CUDA_ERROR_UNKNOWN);
  ::close(descriptor);
  result = DRIVER(cuMemUnmap)(address, kBytes);
  if (result == CUDA_SUCCESS) result = DRIVER(cuMemRelease)(handle);
  if (result != CUDA_SUCCESS) return fail("release", result);
  if (used() != before) return fail("the exporter is still charged", CUDA_ERROR_UNKNOWN);
  char byte = 0;
  int status = -1;
  if (::write(socket, &byte, 1) != 1 || ::wait(&status) < 0 || status != 0) return 1;
  std::puts("given away");
  return 0;
}

// Receives the descriptor once the exporter says that it has released the memory.
int take_away(int socket) {
  for (int waiting = 0; waiting < 2; ::sched_yield()) {
    if (::ioctl(socket, FIONREAD, &waiting) != 0) return 1;
  }
  return take(socket);
}

int between(int (*parent)(int), int (*child)(int)) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return 1;
  if (::fork() == 0) {
    ::close(sockets[1]);
    return child(sockets[0]);
  }
  ::close(sockets[0]);
  return parent(sockets[1]);
}

}  // namespace

int share_memory() {
  return between(give, take);
}

int give_memory_away() {
  return between(give_away, take_away);
}
