// Streams and events. Layer: context. Threads: any.
#include "context.h"

using namespace simcudart;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
  return in_context([=] { return call(driver.cuStreamCreate, stream, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority) {
  return in_context([=] { return call(driver.cuStreamCreateWithPriority, stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return in_context([=] { return call(driver.cuStreamDestroy_v2, stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return in_context([=] { return call(driver.cuStreamSynchronize, stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return in_context([=] { return call(driver.cuStreamQuery, stream); });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags) {
  return in_context([=] { return call(driver.cuStreamGetFlags, stream, flags); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  return in_context([=] { return call(driver.cuStreamGetPriority, stream, priority); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return in_context([=] { return call(driver.cuStreamWaitEvent, stream, event, flags); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument) {
  return in_context([=] { return call(driver.cuLaunchHostFunc, stream, function, argument); });
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  return in_context([=] { return call(driver.cuEventCreate, event, flags); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return in_context([=] { return call(driver.cuEventRecord, event, stream); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return in_context([=] { return call(driver.cuEventQuery, event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return in_context([=] { return call(driver.cuEventSynchronize, event); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return in_context([=] { return call(driver.cuEventDestroy_v2, event); });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return in_context([=] { return call(driver.cuEventElapsedTime_v2, milliseconds, start, end); });
}

}  // extern "C"
