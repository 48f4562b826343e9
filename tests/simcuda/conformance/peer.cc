// One of several processes that share memory: executes each line of its standard input and answers each with a line: a
// driver's code first, then the results. Blocks are `own` and `opened`, the last one or, with an index, an earlier one;
// `own0+512` is an address in the first.
#include <cuda.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

// The export of CUDA 4.1; the header maps its name to a later one.
#undef cuIpcOpenMemHandle
extern "C" CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags);

namespace {

struct Peer {
  CUcontext context = nullptr;
  std::vector<CUdeviceptr> own;
  std::vector<CUdeviceptr> opened;
  CUmemoryPool pool = nullptr;
  std::vector<int> exhausting;
};

CUdeviceptr named(const Peer &peer, const std::string &which) {
  const bool opened = which.rfind("opened", 0) == 0;
  const std::vector<CUdeviceptr> &all = opened ? peer.opened : peer.own;
  const std::string suffix = which.substr(opened ? 6 : 3);
  const std::size_t plus = suffix.find('+');
  const std::string number = suffix.substr(0, plus);
  const std::size_t index = number.empty() ? all.size() - 1 : std::stoul(number);
  return index >= all.size() ? 0 : all[index] + (plus == std::string::npos ? 0 : std::stoul(suffix.substr(plus)));
}

void answer(CUresult code, const std::string &details = "") {
  std::cout << static_cast<int>(code) << (details.empty() ? "" : " ") << details << std::endl;
}

template <class Handle>
std::string hex(const Handle &handle) {
  std::string text;
  for (const auto c : handle.reserved) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    text += two;
  }
  return text;
}

template <class Handle>
Handle from_hex(const std::string &text) {
  Handle handle = {};
  for (std::size_t i = 0; i < sizeof handle.reserved && 2 * i + 1 < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    std::memcpy(&handle.reserved[i], &byte, 1);
  }
  return handle;
}

void share(const Peer &peer, std::istream &line) {
  std::string which;
  line >> which;
  CUipcMemHandle handle = {};
  const CUresult code = cuIpcGetMemHandle(&handle, named(peer, which));
  answer(code, code == CUDA_SUCCESS ? hex(handle) : "");
}

void open(Peer &peer, std::istream &line, decltype(&cuIpcOpenMemHandle) call) {
  std::string text;
  line >> text;
  CUdeviceptr address = 0;
  const CUresult code = call(&address, from_hex<CUipcMemHandle>(text), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  const bool again = !peer.opened.empty() && peer.opened.back() == address;
  if (code == CUDA_SUCCESS) peer.opened.push_back(address);
  answer(code, code != CUDA_SUCCESS ? "" : again ? "again" : "new");
}

// The common value of the bytes, or the first difference.
void read(const Peer &peer, std::istream &line) {
  std::string which;
  std::size_t bytes = 0;
  line >> which >> bytes;
  std::vector<unsigned char> host(bytes);
  const CUresult code = cuMemcpyDtoH(host.data(), named(peer, which), bytes);
  bool same = true;
  for (const unsigned char byte : host) same &= byte == host[0];
  answer(code, code != CUDA_SUCCESS ? "" : same ? std::to_string(host[0]) : "mixed");
}

// The answer for an address inside the block, checked to equal the answer for its start.
void range(const Peer &peer, std::istream &line) {
  std::string which;
  line >> which;
  const CUdeviceptr address = named(peer, which);
  CUdeviceptr base = 0, again = 0;
  std::size_t bytes = 0;
  CUresult code = cuMemGetAddressRange(&base, &bytes, address);
  if (code == CUDA_SUCCESS) code = cuMemGetAddressRange(&again, &bytes, address + bytes / 2);
  if (again != base) code = CUDA_ERROR_UNKNOWN;
  answer(code, code != CUDA_SUCCESS ? "" : std::to_string(base == address) + " " + std::to_string(bytes));
}

void attributes(const Peer &peer, std::istream &line) {
  std::string which;
  line >> which;
  unsigned type = 0;
  int ordinal = -1;
  bool shareable = false;
  CUcontext context = nullptr;
  CUpointer_attribute queried[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, CU_POINTER_ATTRIBUTE_CONTEXT};
  void *places[] = {&type, &ordinal, &shareable, &context};
  const CUresult code = cuPointerGetAttributes(4, queried, places, named(peer, which));
  std::ostringstream details;
  details << type << " " << ordinal << " " << shareable << " " << (context == peer.context);
  answer(code, details.str());
}

// The block's name in this process; whether it is synchronous.
void identity(const Peer &peer, std::istream &line) {
  std::string which;
  line >> which;
  unsigned long long id = 0;
  unsigned synchronous = 0;
  CUpointer_attribute queried[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
  void *places[] = {&id, &synchronous};
  const CUresult code = cuPointerGetAttributes(2, queried, places, named(peer, which));
  answer(code, std::to_string(id) + " " + std::to_string(synchronous));
}

// Completed before the answer: the work of two processes is not ordered.
CUresult fill(CUdeviceptr address, unsigned value, std::size_t bytes) {
  const CUresult code = cuMemsetD8(address, static_cast<unsigned char>(value), bytes);
  return code != CUDA_SUCCESS ? code : cuCtxSynchronize();
}

CUresult make_pool(Peer &peer, unsigned handle_types) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return cuMemPoolCreate(&peer.pool, &props);
}

// The descriptor's path for another process.
void export_pool(const Peer &peer) {
  int file = -1;
  const CUresult code = cuMemPoolExportToShareableHandle(&file, peer.pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file);
  answer(code, code == CUDA_SUCCESS ? path : "");
}

CUresult import_pool(Peer &peer, const std::string &path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void *const handle = reinterpret_cast<void *>(static_cast<std::intptr_t>(file));
  const CUresult code =
      cuMemPoolImportFromShareableHandle(&peer.pool, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (file >= 0) ::close(file);
  return code;
}

void export_block(const Peer &peer) {
  CUmemPoolPtrExportData data = {};
  const CUresult code = cuMemPoolExportPointer(&data, peer.own.empty() ? 0 : peer.own.back());
  answer(code, code == CUDA_SUCCESS ? hex(data) : "");
}

CUresult import_block(Peer &peer, const std::string &text) {
  auto data = from_hex<CUmemPoolPtrExportData>(text);
  CUdeviceptr address = 0;
  const CUresult code = cuMemPoolImportPointer(&address, peer.pool, &data);
  if (code == CUDA_SUCCESS) peer.opened.push_back(address);
  return code;
}

// False: the line is another command.
bool obey_about_pools(Peer &peer, const std::string &op, std::istream &line) {
  std::size_t number = 0;
  unsigned value = 0;
  std::string text;
  if (op == "pool" && line >> value) {
    answer(make_pool(peer, value));
  } else if (op == "pool_take" && line >> number >> value) {
    CUdeviceptr block = 0;
    const CUresult code = cuMemAllocFromPoolAsync(&block, number, peer.pool, nullptr);
    if (code == CUDA_SUCCESS) peer.own.push_back(block);
    answer(code != CUDA_SUCCESS ? code : fill(block, value, number));
  } else if (op == "pool_export") {
    export_pool(peer);
  } else if (op == "pool_import" && line >> text) {
    answer(import_pool(peer, text));
  } else if (op == "pool_share") {
    export_block(peer);
  } else if (op == "pool_open" && line >> text) {
    answer(import_block(peer, text));
  } else if (op == "pool_current") {
    answer(cuDeviceSetMemPool(0, peer.pool));
  } else if (op == "pool_destroy") {
    answer(cuMemPoolDestroy(peer.pool));
  } else if (op == "free_in_order" && line >> text) {
    const CUresult code = cuMemFreeAsync(named(peer, text), nullptr);
    answer(code != CUDA_SUCCESS ? code : cuCtxSynchronize());
  } else {
    return false;
  }
  return true;
}

// What a process does beside the driver. False: the line is another command.
bool obey_about_process(Peer &peer, const std::string &op, std::istream &line) {
  int number = 0;
  if (op == "exhaust") {  // no descriptor is left
    for (int file = ::open("/", O_PATH | O_CLOEXEC); file >= 0; file = ::open("/", O_PATH | O_CLOEXEC)) {
      peer.exhausting.push_back(file);
    }
    answer(CUDA_SUCCESS);
  } else if (op == "relax") {
    for (const int file : peer.exhausting) ::close(file);
    peer.exhausting.clear();
    answer(CUDA_SUCCESS);
  } else if (op == "close_file" && line >> number) {
    // Perhaps under a thread that uses it: a race by intent, which ThreadSanitizer need not see.
    answer(::syscall(SYS_close, number) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
  } else if (op == "fork") {  // the child stays until it is killed, or this process ends
    std::cout.flush();
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) ::pause();
    }
    answer(child > 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, std::to_string(child));
  } else {
    return false;
  }
  return true;
}

// About addresses as memory that has handles.
bool obey_about_handles(const Peer &peer, const std::string &op, std::istream &line) {
  std::string which;
  std::size_t bytes = 0;
  if (op == "retain" && line >> which) {
    CUmemGenericAllocationHandle handle = 0;
    answer(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(named(peer, which))));
  } else if (op == "unmap" && line >> which >> bytes) {
    answer(cuMemUnmap(named(peer, which), bytes));
  } else if (op == "handle_types" && line >> which) {
    std::uint64_t types = 0;
    const CUresult code = cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, named(peer, which));
    answer(code, std::to_string(types));
  } else {
    return false;
  }
  return true;
}

void obey(Peer &peer, const std::string &text) {
  std::istringstream line(text);
  std::string op;
  line >> op;
  std::size_t number = 0;
  unsigned value = 0;
  std::string which;
  if (obey_about_pools(peer, op, line) || obey_about_process(peer, op, line) || obey_about_handles(peer, op, line)) {
    return;
  }
  if (op == "take" && line >> number >> value) {
    CUdeviceptr block = 0;
    const CUresult code = cuMemAlloc(&block, number);
    peer.own.push_back(block);
    answer(code != CUDA_SUCCESS ? code : fill(block, value, number));
  } else if (op == "write" && line >> which >> value >> number) {
    answer(fill(named(peer, which), value, number));
  } else if (op == "fill" && line >> which >> value >> number) {  // and whether that has ended
    const CUresult code = cuMemsetD8(named(peer, which), static_cast<unsigned char>(value), number);
    answer(code, std::to_string(cuStreamQuery(nullptr)));
  } else if (op == "write_later" && line >> which >> value >> number) {
    answer(cuMemsetD8Async(named(peer, which), static_cast<unsigned char>(value), number, nullptr));
  } else if (op == "wait") {
    answer(cuCtxSynchronize());
  } else if (op == "free" && line >> which) {
    answer(cuMemFree(named(peer, which)));
  } else if (op == "close" && line >> which) {
    answer(cuIpcCloseMemHandle(named(peer, which)));
  } else if (op == "context") {
    answer(cuCtxCreate(&peer.context, nullptr, 0, 0));
  } else if (op == "destroy") {
    answer(cuCtxDestroy(peer.context));
  } else if (op == "held") {
    std::size_t free = 0, total = 0;
    const CUresult code = cuMemGetInfo(&free, &total);
    answer(code, std::to_string(total - free));
  } else if (op == "share_all") {
    CUipcMemHandle handle = {};
    std::size_t shared = 0;
    CUresult code = CUDA_SUCCESS;
    while (code == CUDA_SUCCESS && shared < peer.own.size()) {
      code = cuIpcGetMemHandle(&handle, peer.own[shared]);
      shared += code == CUDA_SUCCESS ? 1 : 0;
    }
    answer(code, std::to_string(shared));
  } else if (op == "take_many" && line >> number) {
    CUresult code = CUDA_SUCCESS;
    for (std::size_t i = 0; i < number && code == CUDA_SUCCESS; ++i) {
      peer.own.push_back(0);
      code = cuMemAlloc(&peer.own.back(), 512);
    }
    answer(code);
  } else if (op == "share") {
    share(peer, line);
  } else if (op == "open") {
    open(peer, line, &cuIpcOpenMemHandle_v2);
  } else if (op == "open_v1") {
    open(peer, line, &cuIpcOpenMemHandle);
  } else if (op == "read") {
    read(peer, line);
  } else if (op == "range") {
    range(peer, line);
  } else if (op == "attributes") {
    attributes(peer, line);
  } else if (op == "identity") {
    identity(peer, line);
  } else if (op == "synchronous" && line >> which >> value) {
    answer(cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, named(peer, which)));
  } else {
    answer(CUDA_ERROR_UNKNOWN, text);
  }
}

}  // namespace

int main() {
  Peer peer;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&peer.context, nullptr, 0, 0) != CUDA_SUCCESS) return 1;
  for (std::string line; std::getline(std::cin, line);) obey(peer, line);
  return 0;
}
