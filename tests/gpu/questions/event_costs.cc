// What do the calls cost that tell a pool whether a freed block is still in use: cuCtxGetCurrent, records and queries
// of events that are over and that are not, on an idle and on a busy device, from one thread, a second one, and both?
// How long after its record is an event over?
#include <atomic>
#include <thread>

#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr int kQueries = 2000, kRecords = 100;

// What one thread works on.
struct Bench {
  explicit Bench(Cleanup &cleanup) {
    must(cuCtxGetCurrent(&context));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    cleanup.add([this] { cuStreamDestroy(stream); });
    for (CUevent *const event : {&past, &pending, &scratch}) {
      must(cuEventCreate(event, CU_EVENT_DISABLE_TIMING));
      cleanup.add([event] { cuEventDestroy(*event); });
    }
    must(cuEventRecord(past, stream));
    must(cuStreamSynchronize(stream));
  }
  CUcontext context = nullptr;
  CUstream stream = nullptr;  // idle, also on a busy device
  CUevent past = nullptr, pending = nullptr, scratch = nullptr;
};

using Figures = std::vector<std::pair<std::string, double>>;

Figures measure(const Bench &bench, CUstream busy) {
  CUcontext current = nullptr;
  Figures all;
  const auto add = [&](const std::string &name, int count, const std::function<void()> &call) {
    all.emplace_back(name, mean_ns(count, call));
  };
  const auto record = [&] { must(cuCtxRecordEvent(bench.context, bench.scratch)); };
  add("cuCtxGetCurrent_ns", 10 * kQueries, [&] { cuCtxGetCurrent(&current); });
  add("cuEventQuery_of_a_past_event_ns", kQueries, [&] { cuEventQuery(bench.past); });
  add("cuCtxRecordEvent_ns", kRecords, record);
  add("cuEventRecord_in_an_idle_stream_ns", kRecords, [&] { must(cuEventRecord(bench.scratch, bench.stream)); });
  add("cuCtxRecordEvent_and_query_ns", kRecords, [&] {
    record();
    cuEventQuery(bench.scratch);
  });
  add("cuCtxRecordEvent_of_a_new_event_ns", kRecords, [&] {
    CUevent event = nullptr;
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cuCtxRecordEvent(bench.context, event));
    must(cuEventDestroy(event));
  });
  if (busy == nullptr) return all;
  add("cuEventRecord_in_the_busy_stream_ns", kRecords, [&] { must(cuEventRecord(bench.pending, busy)); });
  add("cuEventQuery_of_a_pending_event_ns", kQueries, [&] { cuEventQuery(bench.pending); });
  return all;
}

Figures in_thread(const Bench &bench, CUstream busy, std::atomic<int> &waiting) {
  must(cuCtxSetCurrent(bench.context));
  --waiting;
  while (waiting > 0) std::this_thread::yield();
  return measure(bench, busy);
}

// Each part with a kernel of its own in the busy stream: what the one before has queued behind it is over.
void of_all_threads(Test &test, const std::string &prefix, const Bench &first, const Bench &second, CUstream busy) {
  const Kernels kernels = load_kernels();
  std::unique_ptr<Spin> spin;
  const auto occupy = [&] {
    if (busy == nullptr) return;
    spin.reset();
    must(cuStreamSynchronize(busy));
    spin = std::make_unique<Spin>(kernels, busy, 1900);
  };
  const auto report = [&](const std::string &who, const Figures &figures) {
    for (const auto &[name, value] : figures) test.number(prefix + who + name, value);
  };
  // A Stop must not leave its thread.
  const auto run = [&](const Bench &bench, std::atomic<int> &waiting, Figures &into) {
    return std::thread([&bench, busy, &waiting, &into] {
      try {
        into = in_thread(bench, busy, waiting);
      } catch (const Stop &) {
        into.clear();
      }
    });
  };
  occupy();
  report("first_thread.", measure(first, busy));
  Figures of_first, of_second;
  std::atomic<int> alone = 1, both = 2;
  occupy();
  run(second, alone, of_second).join();
  report("second_thread.", of_second);
  occupy();
  std::thread one = run(first, both, of_first), other = run(second, both, of_second);
  one.join();
  other.join();
  report("one_of_both_at_once.", of_first);
  if (spin != nullptr) test.yes("still_busy_at_the_end", spin->running());
}

void calls(Test &test) {
  Cleanup cleanup;
  const Bench first(cleanup), second(cleanup);
  of_all_threads(test, "idle.", first, second, nullptr);
  CUstream busy = nullptr;
  must(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
  cleanup.add([busy] { cuStreamDestroy(busy); });
  of_all_threads(test, "busy.", first, second, busy);
  test.note("Means of many calls in a row; busy: a kernel runs in another stream of the context.");
}

// How often, and for how long, an event has to be asked about until it is over.
void until_over(Test &test) {
  Cleanup cleanup;
  const Bench bench(cleanup);
  const Kernels kernels = load_kernels();
  const auto wait = [&](const std::string &name, const std::function<void()> &record) {
    std::vector<double> took, asked;
    for (int i = 0; i < kRecords; ++i) {
      double count = 0;
      record();
      took.push_back(microseconds([&] {
        while (cuEventQuery(bench.scratch) == CUDA_ERROR_NOT_READY) ++count;
      }));
      asked.push_back(count);
    }
    test.number(name + ".us", median(took));
    test.number(name + ".queries_in_vain", median(asked));
  };
  const auto of_context = [&] { must(cuCtxRecordEvent(bench.context, bench.scratch)); };
  const auto of_stream = [&] { must(cuEventRecord(bench.scratch, bench.stream)); };
  wait("idle.context_event", of_context);
  wait("idle.stream_event", of_stream);
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, kMiB));
  cleanup.add([block] { cuMemFree(block); });
  wait("after_a_fill_of_1MiB.context_event", [&] {
    must(cuMemsetD8Async(block, 1, kMiB, bench.stream));
    of_context();
  });
  CUstream busy = nullptr;
  must(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
  cleanup.add([busy] { cuStreamDestroy(busy); });
  const Spin spin(kernels, busy, 1900);
  wait("busy.stream_event_of_an_idle_stream", of_stream);
  test.yes("still_busy_at_the_end", spin.running());
  test.note("Medians from the return of the record to the first query that says that the event is over.");
}

}  // namespace

int main() {
  return question::run({{"calls", calls}, {"until_over", until_over}});
}
