// imported STEP...: a process that exports 100 MiB of physical memory, and one that imports, maps and writes it. Then
// the steps, in any order: importer_unmaps, importer_releases, exporter_releases. Prints after each the MiB that
// exporter and importer are told to be free, and at the end whether the exporter read what the importer wrote.
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBytes = 100 * kMiB;
constexpr unsigned char kWritten = 0x5a;

bool start() {
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS;
}

long free_mib() {
  size_t free_bytes = 0, total = 0;
  return cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS ? static_cast<long>(free_bytes / kMiB) : -1;
}

CUdeviceptr map(CUmemGenericAllocationHandle handle) {
  CUdeviceptr range = 0;
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const bool mapped = cuMemAddressReserve(&range, kBytes, 0, 0, 0) == CUDA_SUCCESS &&
                      cuMemMap(range, kBytes, 0, handle, 0) == CUDA_SUCCESS &&
                      cuMemSetAccess(range, kBytes, &access, 1) == CUDA_SUCCESS;
  return mapped ? range : 0;
}

// A message of one byte with room for a descriptor.
struct Envelope {
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};

  Envelope() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof(room);
  }
  Envelope(const Envelope &) = delete;
  Envelope &operator=(const Envelope &) = delete;
};

bool send_descriptor(int to, int descriptor) {
  Envelope envelope;
  cmsghdr *header = CMSG_FIRSTHDR(&envelope.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  return sendmsg(to, &envelope.message, 0) == 1;
}

int receive_descriptor(int from) {
  Envelope envelope;
  int descriptor = -1;
  if (recvmsg(from, &envelope.message, 0) == 1 && CMSG_FIRSTHDR(&envelope.message) != nullptr) {
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&envelope.message)), sizeof(int));
  }
  return descriptor;
}

// Answers each byte: 'f' what is free, 'r' the same after the release of its handle, 'c' whether it reads what was
// written.
int be_exporter(int importer) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  int descriptor = -1;
  if (!start() || cuMemCreate(&handle, kBytes, &prop, 0) != CUDA_SUCCESS ||
      cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS ||
      !send_descriptor(importer, descriptor)) {
    return 1;
  }
  close(descriptor);
  for (char byte = 0; read(importer, &byte, 1) == 1;) {
    long answer = 0;
    if (byte == 'c') {
      const CUdeviceptr range = map(handle);
      unsigned char last = 0;
      answer = cuMemcpyDtoH_v2(&last, range + kBytes - 1, 1) == CUDA_SUCCESS && last == kWritten;
      cuMemUnmap(range, kBytes);
    } else {
      answer = byte == 'r' && cuMemRelease(handle) != CUDA_SUCCESS ? -1 : free_mib();
    }
    if (write(importer, &answer, sizeof(answer)) != sizeof(answer)) {
      return 1;
    }
  }
  return 0;
}

long ask(int exporter, char what) {
  long answer = -1;
  return write(exporter, &what, 1) == 1 && read(exporter, &answer, sizeof(answer)) == sizeof(answer) ? answer : -1;
}

}  // namespace

int main(int count, char **steps) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) {
    return 1;
  }
  if (fork() == 0) {
    close(ends[0]);
    return be_exporter(ends[1]);
  }
  close(ends[1]);
  const int exporter = ends[0];
  const int descriptor = receive_descriptor(exporter);
  CUmemGenericAllocationHandle handle = 0;
  if (!start() || cuMemImportFromShareableHandle(&handle, reinterpret_cast<void *>(static_cast<intptr_t>(descriptor)),
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS) {
    return 1;
  }
  close(descriptor);
  const CUdeviceptr range = map(handle);
  if (cuMemsetD8_v2(range, kWritten, kBytes) != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS) {
    return 1;
  }
  printf("imported %ld %ld\n", ask(exporter, 'f'), free_mib());
  printf("read %ld\n", ask(exporter, 'c'));
  for (int i = 1; i < count; ++i) {
    CUresult code = CUDA_SUCCESS;
    const bool exporters = strcmp(steps[i], "exporter_releases") == 0;
    if (strcmp(steps[i], "importer_unmaps") == 0) {
      code = cuMemUnmap(range, kBytes);
    } else if (strcmp(steps[i], "importer_releases") == 0) {
      code = cuMemRelease(handle);
    }
    printf("%s=%d %ld %ld\n", steps[i], code, ask(exporter, exporters ? 'r' : 'f'), free_mib());
  }
  return 0;
}
