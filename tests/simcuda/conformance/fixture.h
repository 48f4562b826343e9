// Shared by the conformance tests: a context for one test, a gate that blocks a stream, and the simulator's own entry
// points if the driver is the simulator. Everything else is the public driver API, so that the tests can run on a real
// driver.
#pragma once
#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "simcuda/simcuda.h"
#include "tests/catch.h"

namespace simcuda::conformance {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr CUdeviceptr kUntouched = 0x1234;  // in an out-parameter before the call
inline constexpr char kImage[] = "any bytes are an image here";

// Initialises the driver; at most once.
void start_driver();

// A new context on a device, current to this thread; destroyed with everything in it.
class CurrentContext {
 public:
  explicit CurrentContext(CUdevice device = 0);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;
  CUcontext get() const { return context_; }

 private:
  CUcontext context_ = nullptr;
};

CUdeviceptr device_memory(std::size_t bytes);
CUstream new_stream(unsigned flags = CU_STREAM_DEFAULT);
CUevent new_event(unsigned flags = CU_EVENT_DEFAULT);
std::size_t free_bytes();
// True if device 0 supports the attribute.
bool supports(CUdevice_attribute attribute);
std::vector<unsigned char> counting(std::size_t bytes, unsigned char first = 1);
std::vector<unsigned char> read_back(CUdeviceptr address, std::size_t bytes);
// Fills a block and copies it back in the stream. Uses no host function, because a blocked one would delay all others.
bool runs_through(CUstream stream);

// A host function that blocks a stream until the gate is opened. The destructor opens it at the latest and waits until
// all these functions have ended. Host functions of other streams wait too.
class Gate {
 public:
  Gate() = default;
  ~Gate();
  Gate(const Gate &) = delete;
  Gate &operator=(const Gate &) = delete;
  void hold(CUstream stream);
  void await();  // waits until one of the gate's host functions runs
  void open();
  bool is_open();

 private:
  static void wait(void *gate);
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool reached_ = false;
  unsigned inside_ = 0;  // blocked and not yet released
};

// The attributes of a pointer; fails the test if the query fails.
template <class Value>
Value attribute(CUpointer_attribute which, CUdeviceptr pointer) {
  Value value{};
  REQUIRE(cuPointerGetAttribute(&value, which, pointer) == CUDA_SUCCESS);
  return value;
}

// The simulator's entry points; null members on a real driver.
struct Simulator {
  decltype(&simcuda_calls) calls;
  decltype(&simcuda_calls_reset) calls_reset;
  decltype(&simcuda_costs_ns) costs_ns;
  decltype(&simcuda_exports) exports;
  decltype(&simcuda_register_kernel) register_kernel;
  decltype(&simcuda_register_global) register_global;
  decltype(&simcuda_host_view) host_view;
  decltype(&simcuda_device_books) device_books;
  explicit operator bool() const { return calls != nullptr; }
};
const Simulator &simulator();

}  // namespace simcuda::conformance
