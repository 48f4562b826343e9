// A program in mode pool whose blocks are watched. No block may have a new owner while work that was submitted before
// its free is unfinished. Threads: any.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "unit/policy/program.h"

namespace ration::test {

inline runtime::Options mode_pool(bool synchronous_free = false) {
  runtime::Options options;
  options.pool = true;
  options.synchronous_free = synchronous_free;
  return options;
}

inline constexpr std::uint64_t kSlab = 2 * kMiB;  // the smallest slab, and the first slab of a pool that grows
inline constexpr std::uint64_t kWhole = kSlab;    // the largest block in such a slab

struct PooledProgram : Program {
  explicit PooledProgram(FakeDriver &fake, std::unique_ptr<TestLimits> given, std::string log = "",
                         runtime::Options options = mode_pool())
      : Program(std::move(given), std::move(log), options), driver(fake) {}

  CUdeviceptr take(std::uint64_t bytes) {
    CUdeviceptr address = kUntouched;
    const CUresult result = allocate(bytes, &address);
    const std::lock_guard lock(mutex_);
    last = result;
    if (result == CUDA_SUCCESS) {
      owners_[address] = {bytes, driver.timeline.primary_of(FakeDriver::current)};
      freed_.remove_if([&](const Freed &freed) {
        const bool again = freed.address < address + bytes && address < freed.address + freed.bytes;
        early_ += again && driver.timeline.is_behind(freed.submitted) ? 1 : 0;
        return again;
      });
    }
    return address;
  }
  CUdeviceptr take_direct(std::uint64_t bytes) {
    pooled = false;
    const CUdeviceptr address = Program::take(bytes);
    pooled = true;
    return address;
  }
  CUresult free(CUdeviceptr address) {
    return noted(address, [&] { return Program::free(address); });
  }
  CUresult free_async(CUdeviceptr address, CUstream stream = CU_STREAM_LEGACY) {
    return noted(address, [&] { return Program::free_async(address, stream); });
  }
  // When a context ends, the driver may give its addresses to other contexts.
  CUresult destroy(CUcontext context) {
    std::list<Freed> gone;
    {
      const std::lock_guard lock(mutex_);
      for (auto each = freed_.begin(); each != freed_.end();) {
        const auto next = std::next(each);
        if (each->context == context) {
          gone.splice(gone.end(), freed_, each);
        }
        each = next;
      }
    }
    const CUresult result = Program::destroy(context);
    if (result != CUDA_SUCCESS) {
      const std::lock_guard lock(mutex_);
      freed_.splice(freed_.end(), gone);
    }
    return result;
  }
  CUresult begin_capture(CUstream stream) {
    return parts.sync_and_capture.begin_capture(stream, [&] { return driver::real.cuStreamBeginCapture(stream); });
  }
  CUresult end_capture(CUstream stream) {
    return parts.sync_and_capture.end_capture(stream, [&] { return driver::real.cuStreamEndCapture(stream, nullptr); });
  }
  CUresult destroy_stream(CUstream stream) {
    return parts.sync_and_capture.destroy_stream(stream, [&] { return driver::real.cuStreamDestroy_v2(stream); });
  }
  CUresult synchronise() {
    return parts.sync_and_capture.synchronise(nullptr, [] { return driver::real.cuCtxSynchronize(); });
  }
  CUgreenCtx create_green(int device = 0) {
    CUgreenCtx green = nullptr;
    const CUdevice handle = FakeDriver::kFirstHandle + device;
    (void)parts.context_life.create_green(&green, handle,
                                          [&] { return driver::real.cuGreenCtxCreate(&green, nullptr, handle, 0); });
    return green;
  }
  CUcontext enter_green(CUgreenCtx green) {
    CUcontext context = nullptr;
    if (driver::real.cuCtxFromGreenCtx(&context, green) == CUDA_SUCCESS) {
      parts.context_life.green_converted(context, green);
    }
    return FakeDriver::current = context;
  }
  CUresult destroy_green(CUgreenCtx green) {
    return parts.context_life.destroy_green("cuGreenCtxDestroy", green,
                                            [&] { return driver::real.cuGreenCtxDestroy(green); });
  }

  // Any context's work may use the blocks of both devices, and early() counts accordingly.
  void give_peer_access() {
    parts.contexts.note_peer(0, 1);
    parts.contexts.note_peer(1, 0);
  }
  // The number of blocks that had a new owner too early.
  int early() {
    const std::lock_guard lock(mutex_);
    return early_;
  }
  std::uint64_t free_bytes() { return memory().free_bytes; }

  FakeDriver &driver;

 private:
  struct Freed {
    CUdeviceptr address;
    std::uint64_t bytes;
    CUcontext context;
    FakeTimeline::Point submitted;
  };
  // Notes the free before the call, because another thread may have the block after it.
  template <class Act>
  CUresult noted(CUdeviceptr address, const Act &act) {
    std::list<Freed>::iterator entry;
    {
      const std::lock_guard lock(mutex_);
      entry = freed_.insert(freed_.end(),
                            {address, owners_[address].bytes, owners_[address].context, driver.timeline.submitted()});
    }
    const CUresult result = act();
    if (result != CUDA_SUCCESS) {
      const std::lock_guard lock(mutex_);
      freed_.erase(entry);
    }
    return result;
  }

  std::mutex mutex_;
  struct Owner {
    std::uint64_t bytes;
    CUcontext context;
  };
  std::map<CUdeviceptr, Owner> owners_;
  std::list<Freed> freed_;
  int early_ = 0;
};

// Runs `body` to its end on a separate thread that has `context` current.
template <class Body>
void on_a_thread(CUcontext context, const Body &body) {
  std::thread([&] {
    FakeDriver::current = context;
    FakeTimeline::mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    body();
  }).join();
}

}  // namespace ration::test
