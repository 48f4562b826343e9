// What memory does a graph take that allocates: when, how much, who gets it back? And what does a graph without
// allocations take?
#include "tests/gpu/questions/graph.h"

namespace {

using namespace question;

void upload_and_launch(Steps &steps, CUgraphExec exec, CUstream stream) {
  must(cuGraphUpload(exec, stream));
  must(cuStreamSynchronize(stream));
  steps.after("uploaded");
  launch(exec, stream);
  steps.after("launched");
}

void steps_of_one(Test &test, std::size_t bytes, CUstream stream) {
  Steps steps(test, bytes == 1 ? "1B" : size_name(bytes));
  Graph graph({bytes}, false, true);
  steps.after("built");
  CUgraphExec exec = instantiated(graph);
  steps.after("instantiated");
  upload_and_launch(steps, exec, stream);
  must(cuDeviceGraphMemTrim(0));
  steps.after("trimmed");
  launch(exec, stream);
  steps.after("launched_again");
  must(cuGraphExecDestroy(exec));
  steps.after("exec_destroyed");
  graph.destroy();
  steps.after("graph_destroyed");
  must(cuDeviceGraphMemTrim(0));
  steps.after("trimmed_at_the_end");
}

void life(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  must(cuDeviceGraphMemTrim(0));
  for (const std::size_t bytes : {std::size_t{1}, kMiB, 31 * kMiB, 33 * kMiB, 100 * kMiB}) {
    steps_of_one(test, bytes, stream);
  }
  test.note("Bytes of the device that each step takes, and what the attributes of graph memory say after it.");
}

// Two graphs, one after the other and then in two streams.
void share(Test &test, CUstream stream, CUstream beside) {
  Steps steps(test, "two_graphs");
  Graph one({64 * kMiB}, false, true), other({64 * kMiB}, false, true);
  const CUgraphExec execs[] = {instantiated(one), instantiated(other)};
  steps.after("instantiated");
  launch(execs[0], stream);
  steps.after("first_launched");
  launch(execs[1], stream);
  steps.after("second_launched");
  must(cuGraphLaunch(execs[0], stream));
  must(cuGraphLaunch(execs[1], beside));
  must(cuCtxSynchronize());
  steps.after("launched_beside_each_other");
  for (const CUgraphExec exec : execs) must(cuGraphExecDestroy(exec));
  steps.after("execs_destroyed");
}

void sums(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  const auto measure = [&](const std::string &name, const std::vector<std::size_t> &blocks, bool at_once, bool free) {
    must(cuDeviceGraphMemTrim(0));
    Steps steps(test, name);
    Graph graph(blocks, at_once, free);
    CUgraphExec exec = instantiated(graph);
    steps.after("instantiated");
    launch(exec, stream);
    steps.after("launched");
    if (!free) {
      for (std::size_t i = 0; i < blocks.size(); ++i) must(cuMemFreeAsync(graph.address(i), stream));
      must(cuStreamSynchronize(stream));
      steps.after("freed_in_a_stream");
    }
    must(cuGraphExecDestroy(exec));
  };
  measure("one_after_the_other", {64 * kMiB, 64 * kMiB, 64 * kMiB}, false, true);
  measure("at_once", {64 * kMiB, 64 * kMiB, 64 * kMiB}, true, true);
  measure("many_small", std::vector<std::size_t>(64, 3 * kMiB / 2), true, true);
  measure("never_freed", {64 * kMiB, 64 * kMiB}, true, false);
  measure("three_of_33_MiB_at_once", {33 * kMiB, 33 * kMiB, 33 * kMiB}, true, true);
  measure("64_then_128_MiB", {64 * kMiB, 128 * kMiB}, false, true);
  measure("128_then_64_MiB", {128 * kMiB, 64 * kMiB}, false, true);
  measure("growing", {10 * kMiB, 20 * kMiB, 30 * kMiB, 40 * kMiB, 50 * kMiB}, false, true);
  must(cuDeviceGraphMemTrim(0));
  share(test, stream, new_stream(cleanup));
  must(cuDeviceGraphMemTrim(0));
  test.note("What graphs of several allocations take together.");
}

// A block of 64 MiB, written, held for 100 ms by a kernel, and copied to pinned memory. words: two that the kernel
// uses, then those that the copy goes to.
CUgraphExec holding(const Kernels &kernels, CUdeviceptr words, unsigned value, CUstream stream) {
  CUdeviceptr block = 0;
  CUgraph graph = nullptr;
  must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  must(cuMemAllocAsync(&block, 64 * kMiB, stream));
  must(fill(kernels, block, 1024, value, stream));
  std::uint64_t limit = 100'000'000;
  void *arguments[] = {&words, &limit};
  must(cuLaunchKernel(kernels.spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  must(copy(kernels, words + 64, block, 16, stream));
  must(cuMemFreeAsync(block, stream));
  must(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = nullptr;
  must(cuGraphInstantiate(&exec, graph, 0));
  must(cuGraphDestroy(graph));
  return exec;
}

void beside(Test &test) {
  Cleanup cleanup;
  must(cuDeviceGraphMemTrim(0));
  const Kernels kernels = load_kernels();
  unsigned *words = nullptr;
  must(cuMemAllocHost(reinterpret_cast<void **>(&words), 4096));
  cleanup.add([words] { cuMemFreeHost(words); });
  CUdeviceptr shared = 0;
  must(cuMemHostGetDevicePointer(&shared, words, 0));
  const CUstream streams[] = {new_stream(cleanup), new_stream(cleanup)};
  CUgraphExec execs[2] = {};
  for (unsigned i = 0; i < 2; ++i) {
    words[256 * i + 1] = 0;
    execs[i] = holding(kernels, shared + 1024 * i, 100 * (i + 1), streams[i]);
  }
  Steps steps(test, "beside");
  const auto both = [&](const std::string &name, CUstream one, CUstream other) {
    const double us = microseconds([&] {
      must(cuGraphLaunch(execs[0], one));
      must(cuGraphLaunch(execs[1], other));
      must(cuCtxSynchronize());
    });
    test.number(name + ".milliseconds", us / 1000);
    test.yes(name + ".right", words[16] == 100 && words[256 + 16] == 200);
    steps.after(name);
  };
  both("first_in_two_streams", streams[0], streams[1]);
  both("again_in_two_streams", streams[0], streams[1]);
  both("in_one_stream", streams[0], streams[0]);
  must(cuDeviceGraphMemTrim(0));
  steps.after("trimmed");
  both("in_one_stream_after_a_trim", streams[0], streams[0]);
  both("then_in_two_streams", streams[0], streams[1]);
  for (const CUgraphExec exec : execs) must(cuGraphExecDestroy(exec));
  must(cuDeviceGraphMemTrim(0));
  test.note("Two graphs launched beside each other: the time of both, and what they take.");
}

void unfreed(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  const auto again = [&](const std::string &name, unsigned long long flags,
                         const std::function<CUresult(CUdeviceptr)> &end) {
    must(cuDeviceGraphMemTrim(0));
    Graph graph({64 * kMiB}, true, false);
    const CUgraphExec exec = instantiated(graph, flags);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    test.code(name + ".range_before_the_launch_code", cuMemGetAddressRange(&base, &bytes, graph.address()));
    launch(exec, stream);
    test.code(name + ".range_code", cuMemGetAddressRange(&base, &bytes, graph.address()));
    test.number(name + ".range_bytes", bytes);
    if (end) test.code(name + ".end_code", end(graph.address()));
    must(cuCtxSynchronize());
    test.number(name + ".used_after_the_end", used());
    test.number(name + ".reserved_after_the_end", reserved());
    test.code(name + ".second_launch_code", cuGraphLaunch(exec, stream));
    must(cuCtxSynchronize());
    test.number(name + ".used_after_the_second_launch", used());
    test.code(name + ".exec_destroy_code", cuGraphExecDestroy(exec));
    test.number(name + ".used_after_exec_destroy", used());
    graph.destroy();
    test.number(name + ".used_after_graph_destroy", used());
    test.code(name + ".free_at_last_code", cuMemFree(graph.address()));
    test.number(name + ".used_at_last", used());
    must(cuDeviceGraphMemTrim(0));
    test.number(name + ".reserved_at_last", reserved());
  };
  again("left", 0, nullptr);
  again("auto_free", CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, nullptr);
  again("cuMemFree", 0, [](CUdeviceptr address) { return cuMemFree(address); });
  again("cuMemFreeAsync", 0, [=](CUdeviceptr address) { return cuMemFreeAsync(address, stream); });
  test.note("A graph's block that the graph does not free.");
}

void plain(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, kMiB));
  cleanup.add([block] { cuMemFree(block); });
  const Kernels kernels = load_kernels();
  for (const int count : {100, 10000}) {
    Steps steps(test, std::to_string(count) + "_nodes");
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < count; ++i) must(fill(kernels, block, 64, 1, stream));
    CUgraph graph = nullptr;
    must(cuStreamEndCapture(stream, &graph));
    steps.after("captured");
    CUgraphExec exec = nullptr;
    must(cuGraphInstantiate(&exec, graph, 0));
    steps.after("instantiated");
    upload_and_launch(steps, exec, stream);
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    steps.after("destroyed");
  }
  test.note("A graph of kernels, without allocations.");
}

void costs(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  Graph graph({64 * kMiB}, false, true);
  CUgraphExec exec = nullptr;
  test.number("instantiate_us", microseconds([&] { exec = instantiated(graph); }));
  test.number("first_launch_us", microseconds([&] { launch(exec, stream); }));
  test.number("launch_us", median_us(100, [&] { launch(exec, stream); }));
  test.number("attribute_ns", mean_ns(1000, [] { reserved(); }));
  test.number("trim_us", microseconds([] { must(cuDeviceGraphMemTrim(0)); }));
  test.number("idle_trim_ns", mean_ns(100, [] { must(cuDeviceGraphMemTrim(0)); }));
  must(cuGraphLaunch(exec, stream));
  const Kernels kernels = load_kernels();
  must(cuStreamSynchronize(stream));
  {
    const Spin spin(kernels, stream, 200);
    must(cuGraphLaunch(exec, stream));
    test.number("attribute_busy_ns", mean_ns(100, [] { reserved(); }));
    test.number("trim_busy_us", microseconds([] { must(cuDeviceGraphMemTrim(0)); }));
    test.yes("trim_waits_for_a_launch", !spin.running());
    test.number("exec_destroy_busy_us", microseconds([&] { must(cuGraphExecDestroy(exec)); }));
    test.yes("exec_destroy_waits_for_a_launch", !spin.running());
    test.number("reserved_while_it_is_queued", reserved());
  }
  must(cuCtxSynchronize());
  must(cuDeviceGraphMemTrim(0));
  test.number("reserved_at_last", reserved());
  test.note("The calls of graph memory, idle, and while a kernel keeps a launch waiting.");
}

}  // namespace

int main() {
  return question::run(
      {{"life", life}, {"sums", sums}, {"beside", beside}, {"unfreed", unfreed}, {"plain", plain}, {"costs", costs}});
}
