// Streams run asynchronously to the host, each in order, and the default streams keep their guarantees. Gates make the
// order deterministic.
#include <signal.h>

#include <atomic>
#include <thread>

#include "tests/simcuda/conformance/fixture.h"

// The per-thread flavours under their export names, regardless of this file's default stream.
namespace simcuda::conformance {
namespace {

void add_digit(void *number) {
  *static_cast<int *>(number) = *static_cast<int *>(number) * 10 + 1;
}
void double_it(void *number) {
  *static_cast<int *>(number) *= 2;
}

TEST_CASE("work of one stream runs in order, asynchronously to the host") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  Gate gate;
  int number = 0;
  gate.hold(stream);
  REQUIRE(cuLaunchHostFunc(stream, add_digit, &number) == CUDA_SUCCESS);
  REQUIRE(cuLaunchHostFunc(stream, double_it, &number) == CUDA_SUCCESS);
  REQUIRE(cuLaunchHostFunc(stream, add_digit, &number) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  CHECK(number == 0);
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(number == 21);
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
}

TEST_CASE("a fill waits in its stream and is not visible before it runs") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(4096);
  REQUIRE(cuMemsetD8(device, 1, 4096) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  const CUstream held = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  gate.hold(held);
  REQUIRE(cuMemsetD8Async(device, 2, 4096, held) == CUDA_SUCCESS);
  std::vector<unsigned char> seen(4096);
  REQUIRE(cuMemcpyDtoHAsync(seen.data(), device, 4096, other) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(other) == CUDA_SUCCESS);
  CHECK(seen == std::vector<unsigned char>(4096, 1));
  gate.open();
  REQUIRE(cuStreamSynchronize(held) == CUDA_SUCCESS);
  CHECK(read_back(device, 4096) == std::vector<unsigned char>(4096, 2));
}

TEST_CASE("the legacy default stream waits for blocking streams, and they wait for it") {
  const CurrentContext context;
  const CUstream blocking = new_stream();
  int number = 0;
  {
    Gate gate;
    gate.hold(blocking);
    REQUIRE(cuLaunchHostFunc(blocking, add_digit, &number) == CUDA_SUCCESS);
    REQUIRE(cuLaunchHostFunc(nullptr, double_it, &number) == CUDA_SUCCESS);
    CHECK(cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY);
    gate.open();
    REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(number == 2);
  }
  {
    Gate gate;
    gate.hold(nullptr);
    REQUIRE(cuLaunchHostFunc(nullptr, add_digit, &number) == CUDA_SUCCESS);
    REQUIRE(cuLaunchHostFunc(blocking, double_it, &number) == CUDA_SUCCESS);
    CHECK(cuStreamQuery(blocking) == CUDA_ERROR_NOT_READY);
    gate.open();
    REQUIRE(cuStreamSynchronize(blocking) == CUDA_SUCCESS);
    CHECK(number == 42);
  }
}

TEST_CASE("a non-blocking stream neither waits for the legacy default stream nor delays it") {
  const CurrentContext context;
  const CUstream free_running = new_stream(CU_STREAM_NON_BLOCKING);
  {
    Gate gate;
    gate.hold(nullptr);
    CHECK(runs_through(free_running));
    CHECK(cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
  }
  Gate gate;
  gate.hold(free_running);
  CHECK(runs_through(nullptr));
  CHECK(cuStreamQuery(free_running) == CUDA_ERROR_NOT_READY);
}

// H100, H200, driver 580.159: one that blocks kept those of other streams from running, as cuda.h allows.
TEST_CASE("host functions run one at a time, in whichever streams") {
  const CurrentContext context;
  const CUstream held = new_stream(CU_STREAM_NON_BLOCKING);
  const CUstream one = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
  std::atomic<int> number{0};
  Gate gate;
  gate.hold(held);
  gate.await();
  const auto note = [](void *count) { ++*static_cast<std::atomic<int> *>(count); };
  const auto note_back = [](CUstream, CUresult, void *count) { ++*static_cast<std::atomic<int> *>(count); };
  REQUIRE(cuLaunchHostFunc(one, note, &number) == CUDA_SUCCESS);
  REQUIRE(cuStreamAddCallback(other, note_back, &number, 0) == CUDA_SUCCESS);
  for (int i = 0; i < 2000; ++i) std::this_thread::yield();
  CHECK(number == 0);
  CHECK(cuStreamQuery(one) == CUDA_ERROR_NOT_READY);
  gate.open();
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(number == 2);
}

// H100, H200, driver 580.159: a second host function would wait for the one that holds the stream.
TEST_CASE("stream 0 of the per-thread flavours is a stream of the calling thread") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(64);
  Gate gate;
  std::vector<unsigned char> seen(64);
  gate.hold(CU_STREAM_PER_THREAD);
  CHECK(cuStreamQuery_ptsz(nullptr) == CUDA_ERROR_NOT_READY);
  std::thread([&] {
    cuCtxSetCurrent(context.get());
    cuMemsetD8Async_ptsz(device, 3, 64, nullptr);
    cuMemcpyDtoHAsync_v2_ptsz(seen.data(), device, 64, nullptr);
    cuStreamSynchronize_ptsz(nullptr);
  }).join();
  CHECK(seen == std::vector<unsigned char>(64, 3));  // the other thread's stream did not wait for this one's
  gate.open();
  CHECK(cuStreamSynchronize_ptsz(nullptr) == CUDA_SUCCESS);
  unsigned long long mine = 0, also_mine = 0, legacy = 0;
  REQUIRE(cuStreamGetId_ptsz(nullptr, &mine) == CUDA_SUCCESS);
  REQUIRE(cuStreamGetId(CU_STREAM_PER_THREAD, &also_mine) == CUDA_SUCCESS);
  REQUIRE(cuStreamGetId_ptsz(CU_STREAM_LEGACY, &legacy) == CUDA_SUCCESS);
  CHECK(mine == also_mine);
  CHECK(mine != legacy);
}

TEST_CASE("a stream waits for another one's event as it was recorded at the time of the call") {
  const CurrentContext context;
  const CUstream first = new_stream(CU_STREAM_NON_BLOCKING), second = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = new_event();
  Gate gate;
  int number = 0;
  gate.hold(first);
  REQUIRE(cuLaunchHostFunc(first, add_digit, &number) == CUDA_SUCCESS);
  REQUIRE(cuEventRecord(event, first) == CUDA_SUCCESS);
  REQUIRE(cuStreamWaitEvent(second, event, 0) == CUDA_SUCCESS);
  REQUIRE(cuLaunchHostFunc(second, double_it, &number) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(second) == CUDA_ERROR_NOT_READY);
  gate.open();
  REQUIRE(cuStreamSynchronize(second) == CUDA_SUCCESS);
  CHECK(number == 2);
}

TEST_CASE("a destroyed stream completes its work, and its handle is invalid") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  Gate gate;
  int number = 0;
  gate.hold(stream);
  REQUIRE(cuLaunchHostFunc(stream, add_digit, &number) == CUDA_SUCCESS);
  REQUIRE(cuStreamDestroy(stream) == CUDA_SUCCESS);
  if (simulator()) {  // a real driver may crash on a dead handle
    CHECK(cuStreamQuery(stream) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuStreamDestroy(stream) == CUDA_ERROR_INVALID_HANDLE);
  }
  gate.open();
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(number == 1);
}

TEST_CASE("memory freed in stream order stays valid until the free is reached", "[alone]") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  const CUdeviceptr device = device_memory(4 * kMiB);
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  gate.hold(stream);
  REQUIRE(cuMemFreeAsync(device, stream) == CUDA_SUCCESS);
  CHECK(free_bytes() <= before - 4 * kMiB);
  if (simulator()) CHECK(cuMemFreeAsync(device, stream) == CUDA_ERROR_INVALID_VALUE);
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a host function must not call CUDA") {
  if (!simulator()) return;  // on a real driver it may also hang
  const CurrentContext context;
  CUresult seen = CUDA_SUCCESS;
  REQUIRE(cuLaunchHostFunc(
              nullptr, [](void *result) { *static_cast<CUresult *>(result) = cuMemFree(0); }, &seen) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(seen == CUDA_ERROR_NOT_PERMITTED);
}

TEST_CASE("a stream callback receives its stream and success") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  struct Seen {
    CUstream stream;
    CUresult status;
  } seen{nullptr, CUDA_ERROR_UNKNOWN};
  const auto note = [](CUstream where, CUresult status, void *to) { *static_cast<Seen *>(to) = {where, status}; };
  REQUIRE(cuStreamAddCallback(stream, note, &seen, 0) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(seen.stream == stream);
  CHECK(seen.status == CUDA_SUCCESS);
  CHECK(cuStreamAddCallback(stream, note, &seen, 1) == CUDA_ERROR_INVALID_VALUE);
}

std::atomic<int> signals_taken{0};

TEST_CASE("a driver's thread takes a signal that the program's threads block") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  Gate gate;
  gate.hold(stream);  // a worker thread exists and waits
  struct sigaction counting {};
  struct sigaction before {};
  counting.sa_handler = [](int) { ++signals_taken; };
  REQUIRE(::sigaction(SIGUSR1, &counting, &before) == 0);
  sigset_t user, unblocked;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &user, &unblocked);
  ::kill(::getpid(), SIGUSR1);
  for (int i = 0; i < 1000000 && signals_taken == 0; ++i) std::this_thread::yield();
  CHECK(signals_taken == 1);  // H100, H200, driver 580.159: the process ended, without a handler
  pthread_sigmask(SIG_SETMASK, &unblocked, nullptr);
  REQUIRE(::sigaction(SIGUSR1, &before, nullptr) == 0);
}

TEST_CASE("a stream returns its flags, priority, context and device") {
  const CurrentContext context;
  CUstream stream = nullptr;
  int least = 0, greatest = 0, priority = 1;
  REQUIRE(cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS);
  REQUIRE(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest - 100) == CUDA_SUCCESS);
  unsigned flags = 0;
  CUcontext owner = nullptr;
  CUdevice device = -1;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  REQUIRE(cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS);
  REQUIRE(cuStreamGetPriority(stream, &priority) == CUDA_SUCCESS);
  REQUIRE(cuStreamGetCtx(stream, &owner) == CUDA_SUCCESS);
  REQUIRE(cuStreamGetDevice(stream, &device) == CUDA_SUCCESS);
  REQUIRE(cuStreamIsCapturing(stream, &capture) == CUDA_SUCCESS);
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  CHECK(priority == greatest);
  CHECK(owner == context.get());
  CHECK(device == 0);
  CHECK(capture == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(cuStreamCreate(&stream, 2) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace simcuda::conformance
