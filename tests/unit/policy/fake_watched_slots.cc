// The fake driver's functions about work, streams and captures, one slot each.
#include "unit/policy/fake_call.h"

namespace ration::test {

using driver::real;

void FakeDriver::fill_watched_slots() {
  fill(
      real.cuCtxRecordEvent, +[](CUcontext context, CUevent event) {
        return call("cuCtxRecordEvent", [&] { return fake->record_context(context, event); });
      });
  fill(
      real.cuCtxSynchronize, +[] { return call("cuCtxSynchronize", [] { return fake->synchronise(); }); });
  fill(
      real.cuThreadExchangeStreamCaptureMode, +[](CUstreamCaptureMode *mode) {
        return call("cuThreadExchangeStreamCaptureMode", [&] {
          std::swap(*mode, FakeTimeline::mode);
          return CUDA_SUCCESS;
        });
      });
  fill(
      real.cuStreamGetCaptureInfo, +[](CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *) {
        return call("cuStreamGetCaptureInfo", [&] {
          if (const auto hook = fake->on_capture_info) {
            hook();
          }
          return fake->timeline.capture_info(stream, status);
        });
      });
  fill(
      real.cuStreamGetCtx, +[](CUstream stream, CUcontext *context) {
        return call("cuStreamGetCtx", [&] {
          *context = fake->timeline.context_of(stream);
          return *context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        });
      });
  fill(
      real.cuStreamIsCapturing, +[](CUstream stream, CUstreamCaptureStatus *status) {
        return call("cuStreamIsCapturing", [&] { return fake->timeline.capture_info(stream, status); });
      });
  fill(
      real.cuStreamBeginCapture, +[](CUstream stream) {
        return call("cuStreamBeginCapture", [&] { return fake->timeline.begin_capture(stream, current); });
      });
  fill(
      real.cuStreamEndCapture, +[](CUstream stream, CUgraph *) {
        return call("cuStreamEndCapture", [&] { return fake->timeline.end_capture(stream); });
      });
  fill(
      real.cuStreamDestroy_v2, +[](CUstream stream) {
        return call("cuStreamDestroy_v2", [&] {
          fake->timeline.close_stream(stream);
          return CUDA_SUCCESS;
        });
      });
  fill(
      real.cuGreenCtxCreate, +[](CUgreenCtx *green, CUdevResourceDesc, CUdevice device, unsigned) {
        return call("cuGreenCtxCreate", [&] { return fake->create_green(green, device - kFirstHandle); });
      });
  fill(
      real.cuCtxFromGreenCtx, +[](CUcontext *context, CUgreenCtx green) {
        return call("cuCtxFromGreenCtx", [&] { return fake->context_of(green, context); });
      });
  fill(
      real.cuGreenCtxDestroy,
      +[](CUgreenCtx green) { return call("cuGreenCtxDestroy", [&] { return fake->destroy_green(green); }); });
}

}  // namespace ration::test
