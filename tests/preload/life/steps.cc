// steps OP...: makes the driver calls that its arguments name, in order, and prints each one's code, never an address,
// so that the output is the same with and without Ration. kOps lists the ops; WHERE:OP+OP... runs ops elsewhere: other:
// a new thread without a current context · child: a forked child · orphan: one without a waiting parent · at_exit,
// destructor: while the process ends.
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "config/values/size_syntax.h"
#include "tests/preload/programs/fill.h"

namespace {

std::vector<CUcontext> contexts;  // in order of creation, attachment or retain; ops refer to them by number
std::vector<CUdeviceptr> blocks;  // in order of allocation; ~0 for a refused one
std::vector<void *> pinned;       // the same of the host
CUstream stream = nullptr;        // made by `stream`

// A size, or a number of a context or a block; none: 0.
size_t bytes_of(const std::string &text) {
  const RationSizeText size = ration_read_size(text.data(), text.size());
  if (size.kind != RATION_SIZE_BYTES && !text.empty()) {
    dprintf(1, "no such number: %s\n", text.c_str());
    _exit(2);
  }
  return size.amount;
}

CUresult allocate(const std::string &size) {
  CUdeviceptr address = preload::kBefore;
  const CUresult code = cuMemAlloc_v2(&address, bytes_of(size));
  blocks.push_back(code == CUDA_SUCCESS ? address : ~CUdeviceptr{0});
  return code != CUDA_ERROR_OUT_OF_MEMORY || address == 0 ? code : CUDA_ERROR_UNKNOWN;
}

CUresult query(const std::string &) {
  size_t free_bytes = 0;
  size_t total = 0;
  const CUresult code = cuMemGetInfo_v2(&free_bytes, &total);
  dprintf(1, "free=%zu total=%zu ", free_bytes, total);
  return code;
}

CUresult pin(const std::string &size) {
  void *memory = &pinned;
  const CUresult code = cuMemHostAlloc(&memory, bytes_of(size), 0);
  pinned.push_back(code == CUDA_SUCCESS ? memory : nullptr);
  return code == CUDA_SUCCESS || memory == &pinned ? code : CUDA_ERROR_UNKNOWN;
}

CUresult attribute(const std::string &which) {
  int value = -1;
  const CUresult code = cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(atoi(which.c_str())), 0);
  dprintf(1, "value=%d ", value);
  return code;
}

CUresult total(const std::string &device) {
  size_t bytes = 0;
  const CUresult code = cuDeviceTotalMem_v2(&bytes, atoi(device.c_str()));
  dprintf(1, "total=%zu ", bytes);
  return code;
}

// Whether the block can be written and read; fails for a dead or an unknown address.
CUresult use(const std::string &block) {
  const CUdeviceptr address = blocks.at(bytes_of(block));
  unsigned seen = 0;
  const CUresult code = cuMemsetD32_v2(address, 0xabcd0123, 1);
  const CUresult back = code == CUDA_SUCCESS ? cuMemcpyDtoH_v2(&seen, address, sizeof(seen)) : code;
  return back == CUDA_SUCCESS && seen != 0xabcd0123 ? CUDA_ERROR_UNKNOWN : back;
}

// For `retain` and similar ops: remembers the context and makes it current.
CUresult enter(CUresult code, CUcontext context) {
  contexts.push_back(context);
  return code == CUDA_SUCCESS ? cuCtxSetCurrent(context) : code;
}

template <class Make>
CUresult enter_made(Make make) {
  CUcontext context = nullptr;
  const CUresult code = make(&context);
  contexts.push_back(context);
  return code;
}

std::map<CUcontext, CUgreenCtx> greens;

// Makes a green context with the whole device, and returns its ordinary context handle.
CUresult make_green(CUdevice device, CUcontext *context) {
  CUdevResource resource{};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUresult code = cuDeviceGetDevResource(device, &resource, CU_DEV_RESOURCE_TYPE_SM);
  code = code == CUDA_SUCCESS ? cuDevResourceGenerateDesc(&description, &resource, 1) : code;
  code = code == CUDA_SUCCESS ? cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM) : code;
  code = code == CUDA_SUCCESS ? cuCtxFromGreenCtx(context, green) : code;
  greens[*context] = green;
  return code;
}

// Waits until the parent closes standard input.
CUresult pause(const std::string &) {
  char byte = 0;
  while (read(0, &byte, 1) == 1) {
  }
  return CUDA_SUCCESS;
}

// Reads one line of standard input, which a child may share, and not a byte more. False at its end.
bool read_line(std::string &line) {
  line.clear();
  for (char byte = 0; read(0, &byte, 1) == 1; line += byte) {
    if (byte == '\n') {
      return true;
    }
  }
  return false;
}

void run_argument(const std::string &op);

// Runs ops from standard input, a line at a time, up to an empty one.
CUresult obey(const std::string &) {
  for (std::string line; read_line(line) && !line.empty();) {
    run_argument(line);
  }
  return CUDA_SUCCESS;
}

// Prints the least free memory seen until the next line of standard input.
CUresult watch(const std::string &) {
  size_t least = ~size_t{0};
  CUresult code = CUDA_SUCCESS;
  dprintf(1, "watching\n");
  for (pollfd input{0, POLLIN, 0}; code == CUDA_SUCCESS && poll(&input, 1, 1) == 0;) {
    size_t free_bytes = 0;
    size_t total = 0;
    code = cuMemGetInfo_v2(&free_bytes, &total);
    least = free_bytes < least ? free_bytes : least;
  }
  dprintf(1, "least=%zu ", least);
  return code;
}

// Replaces the process by a shell command.
CUresult exec(const std::string &command) {
  execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
  return CUDA_ERROR_UNKNOWN;
}

// NAME=VALUE sets a variable, NAME unsets it.
CUresult set_variable(const std::string &text) {
  const size_t equals = text.find('=');
  const int failed = equals == std::string::npos ? unsetenv(text.c_str())
                                                 : setenv(text.substr(0, equals).c_str(), &text[equals + 1], 1);
  return failed == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

CUresult current(const std::string &which) {
  return cuCtxSetCurrent(which == "none" ? nullptr : contexts.at(bytes_of(which)));
}

using Op = std::function<CUresult(const std::string &)>;
int number(const std::string &text) {
  return atoi(text.c_str());
}

const std::map<std::string, Op> kOps = {
    {"init", [](auto &) { return cuInit(0); }},
    {"context", [](auto &d) { return enter_made([&](auto *c) { return cuCtxCreate_v2(c, 0, number(d)); }); }},
    {"context_v1", [](auto &d) { return enter_made([&](auto *c) { return cuCtxCreate(c, 0, number(d)); }); }},
    {"context_v3",
     [](auto &d) { return enter_made([&](auto *c) { return cuCtxCreate_v3(c, nullptr, 0, 0, number(d)); }); }},
    {"context_v4",
     [](auto &d) { return enter_made([&](auto *c) { return cuCtxCreate_v4(c, nullptr, 0, number(d)); }); }},
    {"attach", [](auto &) { return enter_made([](auto *c) { return cuCtxAttach(c, 0); }); }},
    {"retain",
     [](auto &d) {
       CUcontext context = nullptr;
       const CUresult code = cuDevicePrimaryCtxRetain(&context, number(d));
       return enter(code, context);
     }},
    {"green",
     [](auto &d) {
       CUcontext context = nullptr;
       const CUresult code = make_green(number(d), &context);
       return enter(code, context);
     }},
    {"end_green", [](auto &c) { return cuGreenCtxDestroy(greens.at(contexts.at(bytes_of(c)))); }},
    {"current", current},
    {"detach", [](auto &c) { return cuCtxDetach(contexts.at(bytes_of(c))); }},
    {"destroy", [](auto &c) { return cuCtxDestroy_v2(contexts.at(bytes_of(c))); }},
    {"destroy_v1", [](auto &c) { return cuCtxDestroy(contexts.at(bytes_of(c))); }},
    {"release", [](auto &d) { return cuDevicePrimaryCtxRelease_v2(number(d)); }},
    {"release_v1", [](auto &d) { return cuDevicePrimaryCtxRelease(number(d)); }},
    {"reset", [](auto &d) { return cuDevicePrimaryCtxReset_v2(number(d)); }},
    {"reset_v1", [](auto &d) { return cuDevicePrimaryCtxReset(number(d)); }},
    {"alloc", allocate},
    {"alloc_async",
     [](auto &b) {
       blocks.push_back(0);
       return cuMemAllocAsync(&blocks.back(), bytes_of(b), stream);
     }},
    {"managed",
     [](auto &b) {
       CUdeviceptr address = 0;
       return cuMemAllocManaged(&address, bytes_of(b), CU_MEM_ATTACH_GLOBAL);
     }},
    {"pitched",
     [](auto &rows) {
       CUdeviceptr address = 0;
       size_t pitch = 0;
       return cuMemAllocPitch_v2(&address, &pitch, 100, bytes_of(rows), 4);
     }},
    {"free", [](auto &b) { return cuMemFree_v2(blocks.at(bytes_of(b))); }},
    {"free_async", [](auto &b) { return cuMemFreeAsync(blocks.at(bytes_of(b)), stream); }},
    {"free_null", [](auto &) { return cuMemFree_v2(0); }},
    {"use", use},
    {"stream", [](auto &) { return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); }},
    {"work", [](auto &b) { return cuMemsetD8Async(blocks.at(bytes_of(b)), 7, 1024, stream); }},
    {"synchronize", [](auto &) { return cuCtxSynchronize(); }},
    {"synchronize_v2", [](auto &c) { return cuCtxSynchronize_v2(contexts.at(bytes_of(c))); }},
    {"query", query},
    {"pause", pause},
    {"obey", obey},
    {"watch", watch},
    {"exec", exec},
    {"set", set_variable},
    {"open", [](auto &l) { return dlopen(l.c_str(), RTLD_NOW) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND; }},
    {"die", [](auto &) { return raise(SIGKILL) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN; }},
    {"total", total},
    {"attribute", attribute},
    {"pinned", pin},
    {"unpin", [](auto &b) { return cuMemFreeHost(pinned.at(bytes_of(b))); }},
};

void run(const std::string &ops);

// Ops for later, by the time at which they run.
std::vector<std::string> at_exit;
struct AtDestruction {
  ~AtDestruction() {
    for (const std::string &each : ops) {
      run(each);
    }
  }
  std::vector<std::string> ops;
} at_destruction;

void in_child(const std::string &ops) {
  const pid_t child = fork();
  if (child == 0) {
    run(ops);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  dprintf(1, "child: status %d\n", status);
}

// A child without a waiting parent.
void in_orphan(const std::string &ops) {
  if (fork() == 0) {
    run(ops);
    _exit(0);
  }
}

void run_one(const std::string &op) {
  const size_t equals = op.find('=');
  const std::string name = op.substr(0, equals);
  const auto found = kOps.find(name);
  if (found == kOps.end()) {
    dprintf(1, "no such op: %s\n", op.c_str());
    _exit(2);
  }
  const CUresult code = found->second(equals == std::string::npos ? "" : op.substr(equals + 1));
  dprintf(1, "%s: %d\n", op.c_str(), static_cast<int>(code));
}

void run(const std::string &ops) {
  for (size_t at = 0; at < ops.size();) {
    const size_t plus = ops.find('+', at);
    run_one(ops.substr(at, plus - at));
    at = plus == std::string::npos ? plus : plus + 1;
  }
}

void run_at(const std::string &where, const std::string &ops) {
  if (where == "other") {
    std::thread(run, ops).join();
  } else if (where == "child") {
    in_child(ops);
  } else if (where == "orphan") {
    in_orphan(ops);
  } else if (where == "at_exit") {
    at_exit.push_back(ops);
  } else if (where == "destructor") {
    at_destruction.ops.push_back(ops);
  } else {
    dprintf(1, "no such place: %s\n", where.c_str());
    _exit(2);
  }
}

void run_argument(const std::string &op) {
  const size_t colon = op.find(':');
  colon == std::string::npos ? run(op) : run_at(op.substr(0, colon), op.substr(colon + 1));
}

}  // namespace

int main(int argc, char **argv) {
  atexit([] {
    for (const std::string &each : at_exit) {
      run(each);
    }
  });
  for (int i = 1; i < argc; ++i) {
    run_argument(argv[i]);
  }
  return 0;
}
