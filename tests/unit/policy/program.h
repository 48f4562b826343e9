// A program as the policy sees it. Each call here does what the hook of that name does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/assembly.h"
#include "unit/policy/fake_driver.h"

namespace ration::test {

// A limit in bytes on every device, a share of its total, or no limit.
class TestLimits : public policy::LimitSource {
 public:
  std::vector<std::string> resolve_devices(const std::vector<events::DeviceFacts> &devices) override {
    met = devices;
    return lines;
  }
  policy::DeviceLimit limit_on(const events::DeviceFacts &device) const override {
    if (share > 0) {
      return {true, static_cast<std::uint64_t>(static_cast<double>(device.total) * share)};
    }
    return {asked, asked ? std::min(bytes, device.total) : device.total};
  }

  policy::Preallocation preallocation_on(const events::DeviceFacts &) const override { return plan; }
  bool asked_for() const override { return asked || share > 0; }
  std::string spoken(std::uint64_t bytes_shown) const override { return std::to_string(bytes_shown) + " bytes"; }

  bool asked = false;
  std::uint64_t bytes = 0;
  double share = 0;
  policy::Preallocation plan;
  std::vector<std::string> lines;
  std::vector<events::DeviceFacts> met;
};

inline std::unique_ptr<TestLimits> limit_of(std::uint64_t bytes) {
  auto limits = std::make_unique<TestLimits>();
  limits->asked = true;
  limits->bytes = bytes;
  return limits;
}

// Figures of a monitor. If `lists` is set, they include this process's memory on the fake driver's first device.
class FakeFigures : public policy::ProcessFigures {
 public:
  policy::ProcessFigure on(const policy::Device &device) noexcept override {
    policy::ProcessFigure figure;
    if (lists) {
      figure.listed = true;
      const std::uint64_t bytes = FakeDriver::fake->used(device.ordinal) - FakeDriver::fake->taken_by_others;
      figure.bytes = bytes != 0 ? std::optional(bytes) : std::nullopt;
    }
    return figure;
  }
  bool lists = false;
};

inline constexpr CUdeviceptr kUntouched = 0xdead'beef;

struct Program {
  explicit Program(std::unique_ptr<TestLimits> given = std::make_unique<TestLimits>(), std::string log = "",
                   runtime::Options options = {})
      : limits(std::move(given)),
        pooled(options.pool),
        parts(options, *limits, journal_options(std::move(log)), figures, problem) {}

  CUresult allocate(std::uint64_t bytes, CUdeviceptr *address) { return allocate(bytes, bytes, bytes, address); }
  // `bound`: the most that the hook expects the driver to take; `taken`: what it reports afterwards as taken.
  CUresult allocate(std::uint64_t bytes, std::uint64_t bound, std::uint64_t taken, CUdeviceptr *address) {
    const auto act = [&](policy::Obtained &got) {
      got.bytes = taken;
      return driver::real.cuMemAlloc_v2(&got.address, taken);
    };
    return crossed().device_memory.allocate({"cuMemAlloc_v2", bytes, bound, nullptr, pooled}, act, address);
  }
  // The address, or kUntouched if the request was refused.
  CUdeviceptr take(std::uint64_t bytes) {
    CUdeviceptr address = kUntouched;
    last = allocate(bytes, &address);
    return address;
  }
  CUresult free(CUdeviceptr address) {
    return crossed().device_memory.free("cuMemFree_v2", address, [&] { return driver::real.cuMemFree_v2(address); });
  }
  CUresult free_async(CUdeviceptr address, CUstream stream = CU_STREAM_LEGACY) {
    return crossed().stream_memory.free("cuMemFreeAsync", address, stream,
                                        [&] { return driver::real.cuMemFreeAsync(address, stream); });
  }
  CUcontext create(int device = 0) {
    CUcontext context = nullptr;
    const CUdevice handle = FakeDriver::kFirstHandle + device;
    (void)crossed().context_life.create("cuCtxCreate_v2", &context, handle,
                                        [&] { return driver::real.cuCtxCreate_v2(&context, 0, handle); });
    return context;
  }
  CUresult destroy(CUcontext context) {
    return crossed().context_life.destroy("cuCtxDestroy_v2", context,
                                          [&] { return driver::real.cuCtxDestroy_v2(context); });
  }
  CUresult detach(CUcontext context) {
    return crossed().context_life.detach("cuCtxDetach", context, [&] { return driver::real.cuCtxDetach(context); });
  }
  CUcontext retain(int device = 0) {
    CUcontext context = nullptr;
    const CUdevice handle = FakeDriver::kFirstHandle + device;
    crossed().context_life.retain_primary(&context, handle,
                                          [&] { return driver::real.cuDevicePrimaryCtxRetain(&context, handle); });
    return FakeDriver::current = context;
  }
  CUresult release(int device = 0) {
    const CUdevice handle = FakeDriver::kFirstHandle + device;
    return crossed().context_life.release_primary("cuDevicePrimaryCtxRelease_v2", handle,
                                                  [=] { return driver::real.cuDevicePrimaryCtxRelease_v2(handle); });
  }
  CUresult reset(int device = 0) {
    const CUdevice handle = FakeDriver::kFirstHandle + device;
    return crossed().context_life.reset_primary("cuDevicePrimaryCtxReset_v2", handle,
                                                [=] { return driver::real.cuDevicePrimaryCtxReset_v2(handle); });
  }
  struct Seen {
    std::size_t free_bytes = 0, total_bytes = 0;
  };
  Seen memory() {
    Seen seen;
    if (driver::real.cuMemGetInfo_v2(&seen.free_bytes, &seen.total_bytes) == CUDA_SUCCESS) {
      crossed().queries.present_memory(&seen.free_bytes, &seen.total_bytes);
    }
    return seen;
  }

  std::uint64_t charged(int device = 0) const { return parts.ledger.account(device).charged(); }
  const events::SummaryPage &tally() { return parts.journal.tally(); }
  std::uint64_t denied(events::Reason reason, int device = 0) {
    return tally().devices[device].denied[static_cast<int>(reason)];
  }

  // The first step of a hook's boundary.
  runtime::Assembly &crossed() noexcept {
    try {
      parts.describe();
    } catch (...) {
    }
    return parts;
  }

  static events::JournalOptions journal_options(std::string log) {
    events::JournalOptions options;
    options.tree_marks = {"RATION_TEST_NO_PARENT_HAS_THIS=" + log};
    options.log = std::move(log);
    return options;
  }

  std::unique_ptr<TestLimits> limits;
  bool pooled;  // true if the request may be served from a pool
  std::string problem;
  FakeFigures figures;
  runtime::Assembly parts;
  CUresult last = CUDA_SUCCESS;
};

}  // namespace ration::test
