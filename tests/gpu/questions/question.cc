#include "tests/gpu/questions/question.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "tests/gpu/questions/kernels.h"

namespace question {
namespace {

constexpr unsigned kSecondsAtMost = 90;
constexpr unsigned kSpinMsAtMost = 2000;

std::string in_quotes(const std::string &text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "\"";
}

char overdue[300];  // the line for a test that does not end; printed by the signal handler

void end_overdue(int) {
  const auto length = std::strlen(overdue);
  _exit(write(STDOUT_FILENO, overdue, length) == static_cast<ssize_t>(length) ? 1 : 2);
}

void watch(const std::string &name) {
  std::snprintf(overdue, sizeof overdue,
                "{\"name\": \"%s\", \"status\": \"failed\", \"figures\": {}, \"note\": \"not over after %u s\"}\n",
                name.c_str(), kSecondsAtMost);
}

// One launch as the simulated driver hands it to a kernel; see simcuda/simcuda.h.
struct SimulatedLaunch {
  unsigned grid[3], block[3], shared_bytes;
  void **params;
};
using SimulatedKernel = void (*)(const SimulatedLaunch *);
void *(*simulated_view)(CUdeviceptr) = nullptr;

template <class Value>
Value parameter(const SimulatedLaunch *launch, int index) {
  return *static_cast<Value *>(launch->params[index]);
}

// Words of device memory, null where there is none. Neighbouring addresses may have views that are no neighbours, but
// not within a page.
class View {
 public:
  unsigned *word(CUdeviceptr address) {
    if (address / kPage != page_ || view_ == nullptr) {
      page_ = address / kPage;
      view_ = static_cast<char *>(simulated_view(page_ * kPage));
    }
    return view_ == nullptr ? nullptr : reinterpret_cast<unsigned *>(view_ + address % kPage);
  }

 private:
  static constexpr CUdeviceptr kPage = 4096;
  CUdeviceptr page_ = 0;
  char *view_ = nullptr;
};

void simulated_spin(const SimulatedLaunch *launch) {
  auto *words = parameter<volatile unsigned *>(launch, 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(parameter<std::uint64_t>(launch, 1));
  words[0] = 1;
  while (words[1] == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  words[0] = 2;
}

void simulated_fill(const SimulatedLaunch *launch) {
  const auto to = parameter<CUdeviceptr>(launch, 0);
  const auto words = parameter<std::uint64_t>(launch, 1);
  View view;
  for (std::uint64_t i = 0; i < words; ++i) {
    unsigned *const word = view.word(to + 4 * i);
    if (word == nullptr) return;
    *word = parameter<unsigned>(launch, 2) + static_cast<unsigned>(i);
  }
}

void simulated_copy(const SimulatedLaunch *launch) {
  const auto to = parameter<CUdeviceptr>(launch, 0), from = parameter<CUdeviceptr>(launch, 1);
  const auto words = parameter<std::uint64_t>(launch, 2);
  View read, written;
  for (std::uint64_t i = 0; i < words; ++i) {
    unsigned *const target = written.word(to + 4 * i);
    const unsigned *const source = read.word(from + 4 * i);
    if (target == nullptr || source == nullptr) return;
    *target = *source;
  }
}

void register_simulated_kernels() {
  using Register = int (*)(const char *, SimulatedKernel, const std::size_t *, unsigned);
  const auto enter = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "simcuda_register_kernel"));
  simulated_view = reinterpret_cast<void *(*)(CUdeviceptr)>(dlsym(RTLD_DEFAULT, "simcuda_host_view"));
  if (enter == nullptr || simulated_view == nullptr) return;
  constexpr std::size_t kSpin[] = {8, 8}, kFill[] = {8, 8, 4}, kCopy[] = {8, 8, 8};
  enter("spin", simulated_spin, kSpin, 2);
  enter("fill", simulated_fill, kFill, 3);
  enter("copy", simulated_copy, kCopy, 3);
}

CUresult launch(CUfunction kernel, std::size_t threads, CUstream stream, void **parameters) {
  constexpr unsigned kBlock = 256;
  const auto blocks = static_cast<unsigned>((threads + kBlock - 1) / kBlock);
  return cuLaunchKernel(kernel, blocks, 1, 1, threads == 1 ? 1 : kBlock, 1, 1, 0, stream, parameters, nullptr);
}

bool wait_for(const volatile unsigned *word, unsigned at_least) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (*word < at_least && std::chrono::steady_clock::now() < late) std::this_thread::yield();
  return *word >= at_least;
}

}  // namespace

void must(CUresult code, const char *file, int line) {
  if (code == CUDA_SUCCESS) return;
  const char *name = "unknown";
  cuGetErrorName(code, &name);
  const bool lacking = code == CUDA_ERROR_NOT_SUPPORTED || code == CUDA_ERROR_NOT_FOUND;
  const std::string path = file;
  throw Stop{lacking, std::string(name) + " at " + path.substr(path.rfind('/') + 1) + ":" + std::to_string(line)};
}

void skip(const std::string &reason) {
  throw Stop{true, reason};
}

void Test::fraction(const std::string &key, double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", std::abs(value) < 100 ? 3 : 1, value);
  figures_.emplace_back(key, text);
}

void Test::whole(const std::string &key, long long value) {
  figures_.emplace_back(key, std::to_string(value));
}

void Test::text(const std::string &key, const std::string &value) {
  figures_.emplace_back(key, in_quotes(value));
}

void Test::yes(const std::string &key, bool value) {
  figures_.emplace_back(key, value ? "true" : "false");
}

void Test::fail(std::string reason) {
  status_ = "failed";
  note_ = std::move(reason);
}

void Test::stop(const Stop &stop) {
  status_ = stop.skipped ? "skipped" : "failed";
  note_ = stop.reason;
}

void Test::print() const {
  std::string line = "{\"name\": " + in_quotes(name_) + ", \"status\": \"" + status_ + "\", \"figures\": {";
  const char *between = "";
  for (const auto &[key, value] : figures_) {
    line += between + in_quotes(key) + ": " + value;
    between = ", ";
  }
  std::printf("%s}, \"note\": %s}\n", line.c_str(), in_quotes(note_).c_str());
  std::fflush(stdout);
}

void make_ready() {
  must(cuInit(0));
  CUdevice device = 0;
  CUcontext context = nullptr;
  must(cuDeviceGet(&device, 0));
  must(cuDevicePrimaryCtxRetain(&context, device));
  must(cuCtxSetCurrent(context));
  register_simulated_kernels();
}

int run(std::initializer_list<Case> cases, Driver driver) {
  std::signal(SIGALRM, end_overdue);
  alarm(kSecondsAtMost);
  bool failed = false, ready = driver == Driver::kUntouched;
  for (const Case &one : cases) {
    watch(one.name);
    Test test(one.name);
    try {
      if (!ready) make_ready();
      ready = true;
      one.body(test);
    } catch (const Stop &stop) {
      test.stop(stop);
    }
    test.print();
    failed |= test.failed();
  }
  return failed ? 1 : 0;
}

void *export_of(const char *symbol) {
  void *const found = dlsym(RTLD_DEFAULT, symbol);
  if (found == nullptr) skip(std::string("no ") + symbol);
  return found;
}

bool simulated() {
  return dlsym(RTLD_DEFAULT, "simcuda_register_kernel") != nullptr;
}

std::string size_name(std::size_t bytes) {
  if (bytes >= kGiB && bytes % kGiB == 0) return std::to_string(bytes / kGiB) + "GiB";
  if (bytes >= kMiB && bytes % kMiB == 0) return std::to_string(bytes / kMiB) + "MiB";
  return bytes % kKiB == 0 ? std::to_string(bytes / kKiB) + "KiB" : std::to_string(bytes) + "B";
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  must(cuMemGetInfo(&free, &total));
  return free;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Cleanup::~Cleanup() {
  while (!acts_.empty()) {
    acts_.back()();
    acts_.pop_back();
  }
}

Kernels load_kernels() {
  CUmodule module = nullptr;
  Kernels kernels{};
  if (const CUresult code = cuModuleLoadData(&module, kKernels); code != CUDA_SUCCESS) {
    skip("no kernels: cuModuleLoadData answered " + std::to_string(code));
  }
  must(cuModuleGetFunction(&kernels.spin, module, "spin"));
  must(cuModuleGetFunction(&kernels.fill, module, "fill"));
  must(cuModuleGetFunction(&kernels.copy, module, "copy"));
  // A kernel that is loaded lazily, at its first launch, could have to wait for one that is running.
  for (const CUfunction kernel : {kernels.spin, kernels.fill, kernels.copy}) cuFuncLoad(kernel);
  return kernels;
}

CUresult fill(const Kernels &kernels, CUdeviceptr to, std::size_t words, unsigned value, CUstream stream) {
  void *parameters[] = {&to, &words, &value};
  return launch(kernels.fill, words, stream, parameters);
}

CUresult copy(const Kernels &kernels, CUdeviceptr to, CUdeviceptr from, std::size_t words, CUstream stream) {
  void *parameters[] = {&to, &from, &words};
  return launch(kernels.copy, words, stream, parameters);
}

Spin::Spin(const Kernels &kernels, CUstream stream, unsigned limit_ms) {
  void *pinned = nullptr;
  must(cuCtxGetCurrent(&context_));
  must(cuMemHostAlloc(&pinned, 2 * sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
  words_ = static_cast<volatile unsigned *>(pinned);
  words_[0] = 0;
  words_[1] = 0;
  CUdeviceptr seen = 0;
  must(cuMemHostGetDevicePointer(&seen, pinned, 0));
  std::uint64_t nanoseconds = std::uint64_t{1'000'000} * std::min(limit_ms, kSpinMsAtMost);
  void *parameters[] = {&seen, &nanoseconds};
  must(launch(kernels.spin, 1, stream, parameters));
  if (!wait_for(words_, 1)) throw Stop{false, "a kernel did not begin within 5 s"};
}

Spin::~Spin() {
  stop();
  if (!wait_for(words_, 2)) return;  // the device is in trouble: leave its memory alone
  CUcontext before = nullptr;
  cuCtxGetCurrent(&before);
  cuCtxSetCurrent(context_);
  cuMemFreeHost(const_cast<unsigned *>(words_));
  cuCtxSetCurrent(before);
}

void Spin::stop() {
  words_[1] = 1;
}

bool Spin::running() const {
  return words_[0] == 1;
}

}  // namespace question
