// What do the calls of a fast path cost: stream-ordered allocation, warm and cold, with a release threshold of 0 and of
// everything; the queries of a context, a pointer and an event; and an event of a whole context, idle and busy?
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

CUstream new_stream(Cleanup &cleanup, unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, flags));
  cleanup.add([stream] { cuStreamDestroy(stream); });
  return stream;
}

CUevent new_event(Cleanup &cleanup) {
  CUevent event = nullptr;
  must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  cleanup.add([event] { cuEventDestroy(event); });
  return event;
}

CUmemoryPool new_pool(Cleanup &cleanup, cuuint64_t threshold) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  must(cuMemPoolCreate(&pool, &props));
  cleanup.add([pool] { cuMemPoolDestroy(pool); });
  must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  return pool;
}

// Pairs of an allocation and its free; a cold pool holds nothing, as after each synchronise with a threshold of 0.
void pairs(Test &test, const std::string &suffix, CUmemoryPool pool, CUstream stream, std::size_t bytes,
           bool synchronise) {
  std::vector<double> taken, freed, waited;
  for (int i = 0; i < 20; ++i) {
    CUdeviceptr block = 0;
    taken.push_back(microseconds([&] { must(cuMemAllocFromPoolAsync(&block, bytes, pool, stream)); }));
    freed.push_back(microseconds([&] { must(cuMemFreeAsync(block, stream)); }));
    if (synchronise) waited.push_back(microseconds([&] { must(cuStreamSynchronize(stream)); }));
  }
  must(cuStreamSynchronize(stream));
  test.number("first_alloc_us_" + suffix, taken.front());
  test.number("alloc_us_" + suffix, median(taken));
  test.number("free_us_" + suffix, median(freed));
  if (synchronise) test.number("synchronise_us_" + suffix, median(waited));
}

void stream_ordered(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  for (const std::size_t bytes : {64 * kKiB, 32 * kMiB, kGiB}) {
    for (const cuuint64_t threshold : {cuuint64_t{0}, ~cuuint64_t{0}}) {
      Cleanup pool_cleanup;
      const CUmemoryPool pool = new_pool(pool_cleanup, threshold);
      const std::string suffix = size_name(bytes) + (threshold == 0 ? "_threshold_0" : "_threshold_max");
      pairs(test, suffix + "_synchronised", pool, stream, bytes, true);
      pairs(test, suffix + "_unsynchronised", pool, stream, bytes, false);
    }
  }
  test.note("Medians of 20 pairs in one stream, with a synchronise after each pair, then without.");
}

void queries(Test &test) {
  constexpr int kCalls = 2000;
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  const CUevent over = new_event(cleanup);
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, 64 * kMiB));
  cleanup.add([block] { cuMemFree(block); });
  must(cuEventRecord(over, stream));
  must(cuStreamSynchronize(stream));
  CUcontext context = nullptr;
  std::size_t free = 0, total = 0, size = 0;
  CUdeviceptr base = 0;
  unsigned type = 0;
  CUstreamCaptureStatus capture{};
  test.number("cuCtxGetCurrent_ns", mean_ns(kCalls * 10, [&] { cuCtxGetCurrent(&context); }));
  test.number("cuEventQuery_of_a_past_event_ns", mean_ns(kCalls, [&] { cuEventQuery(over); }));
  test.number("cuStreamQuery_idle_ns", mean_ns(kCalls, [&] { cuStreamQuery(stream); }));
  test.number("cuStreamIsCapturing_ns", mean_ns(kCalls, [&] { cuStreamIsCapturing(stream, &capture); }));
  test.number("cuCtxSynchronize_idle_ns", mean_ns(kCalls, [&] { cuCtxSynchronize(); }));
  test.number("cuStreamSynchronize_idle_ns", mean_ns(kCalls, [&] { cuStreamSynchronize(stream); }));
  test.number("cuPointerGetAttribute_ns",
              mean_ns(kCalls, [&] { cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block + kMiB); }));
  test.number("cuMemGetAddressRange_ns", mean_ns(kCalls, [&] { cuMemGetAddressRange(&base, &size, block + kMiB); }));
  test.number("cuMemGetInfo_ns", mean_ns(kCalls / 10, [&] { cuMemGetInfo(&free, &total); }));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  test.number("cuThreadExchangeStreamCaptureMode_ns",
              mean_ns(kCalls, [&] { cuThreadExchangeStreamCaptureMode(&mode); }));
  if (mode != CU_STREAM_CAPTURE_MODE_RELAXED) cuThreadExchangeStreamCaptureMode(&mode);
  test.note("Means of many calls in a row.");
}

void context_events(Test &test) {
  constexpr int kCalls = 200, kStreams = 64, kBusy = 8;
  Cleanup cleanup;
  const CUevent event = new_event(cleanup);
  CUcontext context = nullptr;
  must(cuCtxGetCurrent(&context));
  const auto record = [&] { must(cuCtxRecordEvent(context, event)); };
  const auto measure = [&](const std::string &name) {
    test.number("record_us_" + name, median_us(kCalls, record));
    test.number("query_us_" + name, median_us(kCalls, [&] { cuEventQuery(event); }));
  };
  record();
  measure("idle");
  std::vector<CUstream> streams;
  for (int i = 0; i < kStreams; ++i)
    streams.push_back(new_stream(cleanup, i % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
  for (const CUstream stream : streams) must(cuEventRecord(event, stream));
  must(cuCtxSynchronize());
  measure("with_64_idle_streams");
  test.number("event_record_us_idle", median_us(kCalls, [&] { must(cuEventRecord(event, streams[0])); }));
  const Kernels kernels = load_kernels();
  std::vector<std::unique_ptr<Spin>> busy;
  for (int i = 0; i < kBusy; ++i) {
    busy.push_back(std::make_unique<Spin>(kernels, streams[static_cast<std::size_t>(i)], 1500));
    if (i == 0) measure("with_1_busy_stream");
  }
  measure("with_8_busy_streams");
  test.yes("still_busy_at_the_end", busy.front()->running());
  for (const auto &spin : busy)
    spin->stop();  // all, before the first of them frees its memory and waits for the others
  test.note("Medians; the queries with busy streams are of an event that has not been reached.");
}

}  // namespace

int main() {
  return question::run({{"stream_ordered", stream_ordered}, {"queries", queries}, {"context_events", context_events}});
}
