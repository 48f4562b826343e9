// The fake driver's functions, one slot each.
#include <cstdio>
#include <cstring>

#include "unit/policy/fake_call.h"

namespace ration::test {
namespace {

using driver::real;

void fill_devices() {
  fill(
      real.cuDriverGetVersion,
      +[](int *version) { return call("cuDriverGetVersion", [&] { return answer(version, 13000); }); });
  fill(
      real.cuDeviceGetCount,
      +[](int *count) { return call("cuDeviceGetCount", [&] { return answer(count, FakeDriver::kDevices); }); });
  // A driver's device handle need not be its ordinal.
  fill(
      real.cuDeviceGet, +[](CUdevice *device, int ordinal) {
        return call("cuDeviceGet", [&] { return answer(device, FakeDriver::kFirstHandle + ordinal); });
      });
  fill(
      real.cuDeviceGetName, +[](char *name, int length, CUdevice device) {
        return call("cuDeviceGetName", [&] {
          std::snprintf(name, static_cast<std::size_t>(length), "fake %d", device - FakeDriver::kFirstHandle);
          return CUDA_SUCCESS;
        });
      });
  fill(
      real.cuDeviceGetUuid_v2, +[](CUuuid *uuid, CUdevice device) {
        return call("cuDeviceGetUuid_v2", [&] {
          std::memset(uuid->bytes, 0x10 + device - FakeDriver::kFirstHandle, sizeof(uuid->bytes));
          return CUDA_SUCCESS;
        });
      });
  fill(
      real.cuDeviceTotalMem_v2, +[](std::size_t *bytes, CUdevice) {
        return call("cuDeviceTotalMem_v2", [&] { return answer(bytes, FakeDriver::fake->total); });
      });
  fill(
      real.cuMemGetInfo_v2, +[](std::size_t *free_bytes, std::size_t *total) {
        return call("cuMemGetInfo_v2", [&] { return FakeDriver::fake->memory(free_bytes, total); });
      });
}

void fill_contexts() {
  fill(
      real.cuCtxGetCurrent, +[](CUcontext *context) {
        return call("cuCtxGetCurrent", [&] { return answer(context, FakeDriver::current); });
      });
  fill(
      real.cuCtxGetDevice, +[](CUdevice *device) {
        return call("cuCtxGetDevice", [&] { return FakeDriver::fake->current_device(device); });
      });
  fill(
      real.cuCtxPushCurrent_v2, +[](CUcontext context) {
        return call("cuCtxPushCurrent_v2", [&] {
          FakeDriver::pushed.push_back(FakeDriver::current);
          return answer(&FakeDriver::current, context);
        });
      });
  fill(
      real.cuCtxPopCurrent_v2, +[](CUcontext *context) {
        return call("cuCtxPopCurrent_v2", [&] {
          *context = FakeDriver::current;
          FakeDriver::current = FakeDriver::pushed.back();
          FakeDriver::pushed.pop_back();
          return CUDA_SUCCESS;
        });
      });
  fill(
      real.cuCtxCreate_v2, +[](CUcontext *context, unsigned, CUdevice device) {
        return call("cuCtxCreate_v2",
                    [&] { return FakeDriver::fake->create(context, device - FakeDriver::kFirstHandle); });
      });
  fill(
      real.cuCtxDetach,
      +[](CUcontext context) { return call("cuCtxDetach", [&] { return FakeDriver::fake->destroy(context); }); });
  fill(
      real.cuCtxDestroy_v2,
      +[](CUcontext context) { return call("cuCtxDestroy_v2", [&] { return FakeDriver::fake->destroy(context); }); });
  fill(
      real.cuDevicePrimaryCtxRetain, +[](CUcontext *context, CUdevice device) {
        return call("cuDevicePrimaryCtxRetain",
                    [&] { return FakeDriver::fake->retain_primary(context, device - FakeDriver::kFirstHandle); });
      });
  fill(
      real.cuDevicePrimaryCtxRelease_v2, +[](CUdevice device) {
        return call("cuDevicePrimaryCtxRelease_v2",
                    [&] { return FakeDriver::fake->release_primary(device - FakeDriver::kFirstHandle); });
      });
  fill(
      real.cuDevicePrimaryCtxReset_v2, +[](CUdevice device) {
        return call("cuDevicePrimaryCtxReset_v2",
                    [&] { return FakeDriver::fake->reset_primary(device - FakeDriver::kFirstHandle); });
      });
  fill(
      real.cuDevicePrimaryCtxGetState, +[](CUdevice device, unsigned *flags, int *active) {
        return call("cuDevicePrimaryCtxGetState", [&] {
          *flags = 0;
          return answer(active, FakeDriver::fake->primary_is_active(device - FakeDriver::kFirstHandle));
        });
      });
}

void fill_memory() {
  fill(
      real.cuMemAlloc_v2, +[](CUdeviceptr *address, std::size_t bytes) {
        const CUresult result = call("cuMemAlloc_v2", [&] { return FakeDriver::fake->allocate(address, bytes); });
        if (const auto hook = FakeDriver::fake->after_alloc; hook && result == CUDA_SUCCESS) {
          hook();
        }
        return result;
      });
  fill(
      real.cuMemFree_v2,
      +[](CUdeviceptr address) { return call("cuMemFree_v2", [&] { return FakeDriver::fake->free(address); }); });
  fill(
      real.cuMemFreeAsync, +[](CUdeviceptr address, CUstream) {
        return call("cuMemFreeAsync", [&] { return FakeDriver::fake->free(address); });
      });
  fill(
      real.cuEventCreate, +[](CUevent *event, unsigned) {
        return call("cuEventCreate", [&] { return FakeDriver::fake->new_event(event); });
      });
  fill(
      real.cuEventRecord, +[](CUevent, CUstream) { return call("cuEventRecord", [] { return CUDA_SUCCESS; }); });
  fill(
      real.cuEventQuery,
      +[](CUevent event) { return call("cuEventQuery", [&] { return FakeDriver::fake->event_state(event); }); });
  fill(
      real.cuEventSynchronize, +[](CUevent event) {
        if (const auto hook = FakeDriver::fake->during_wait) {
          hook();
        }
        return call("cuEventSynchronize", [&] { return FakeDriver::fake->wait_for(event); });
      });
  fill(
      real.cuEventDestroy_v2,
      +[](CUevent event) { return call("cuEventDestroy_v2", [&] { return FakeDriver::fake->destroy_event(event); }); });
}

}  // namespace

void FakeDriver::fill_slots() {
  fill_devices();
  fill_contexts();
  fill_memory();
  fill_watched_slots();
}

void FakeDriver::empty_slots() {
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) real.symbol.set(nullptr);
#include "hook_table.inc"
#undef RATION_HOOK
#define RATION_USED(symbol, parameters) real.symbol.set(nullptr);
#include "driver/used_functions.inc"
#undef RATION_USED
}

}  // namespace ration::test
