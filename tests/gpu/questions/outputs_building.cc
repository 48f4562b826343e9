// What do the calls that build graphs, contexts and code, and the look-up of functions, do to their outputs where they
// are refused? As outputs_allocating.
#include "tests/gpu/questions/question.h"
#include "tests/gpu/questions/tables.h"

namespace {

using namespace question;

constexpr int kNoDevice = 99;

CUDA_MEM_ALLOC_NODE_PARAMS block_of(std::size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = bytes;
  return params;
}

struct Scene : Stage {
  Scene() {
    for (CUgraph *const one : {&graph, &plain, &two_nodes, &allocating}) must(cuGraphCreate(one, 0));
    CUgraphNode node = nullptr;
    must(cuGraphAddEmptyNode(&node, plain, nullptr, 0));
    for (int i = 0; i < 2; ++i) must(cuGraphAddEmptyNode(&node, two_nodes, nullptr, 0));
    must(cuGraphInstantiate(&exec, plain, 0));
    CUDA_MEM_ALLOC_NODE_PARAMS params = block_of(kMiB);
    must(cuGraphAddMemAllocNode(&node, allocating, nullptr, 0, &params));
    must(cuGraphInstantiate(&allocating_exec, allocating, 0));
  }
  CUgraph graph = nullptr, plain = nullptr, two_nodes = nullptr, allocating = nullptr;
  CUgraphExec exec = nullptr, allocating_exec = nullptr;
};

struct Block {
  const char *way;
  Crossed crossed;
  std::function<void(Scene &, CUDA_MEM_ALLOC_NODE_PARAMS &)> change;
};

void add_allocations(Table<Scene> &table) {
  using Params = CUDA_MEM_ALLOC_NODE_PARAMS &;
  const Block blocks[] = {
      {"valid", Crossed::kCalls, [](Scene &, Params) {}},
      {"zero", Crossed::kCalls, [](Scene &, Params p) { p.bytesize = 0; }},
      {"too_much", Crossed::kCalls, [](Scene &s, Params p) { p.bytesize = s.too_much; }},
      {"huge", Crossed::kNot, [](Scene &, Params p) { p.bytesize = std::size_t{1} << 60; }},
      {"bad_type", Crossed::kNot, [](Scene &, Params p) { p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_INVALID; }},
      {"no_location", Crossed::kNot,
       [](Scene &, Params p) {
         p.poolProps.location = {CU_MEM_LOCATION_TYPE_INVALID, 0};
       }},
      {"no_such_device", Crossed::kNot, [](Scene &, Params p) { p.poolProps.location.id = kNoDevice; }},
      {"for_export", Crossed::kNot,
       [](Scene &, Params p) { p.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR; }},
      {"access_without_description", Crossed::kNot, [](Scene &, Params p) { p.accessDescCount = 1; }},
  };
  for (const Block &block : blocks) {
    const auto change = block.change;
    table.push_back({"cuGraphAddMemAllocNode", block.way, block.crossed, [=](Scene &s, Outputs &o) {
                       auto *const params = o.hold<CUDA_MEM_ALLOC_NODE_PARAMS>();
                       *params = block_of(kMiB);
                       change(s, *params);
                       o.watch("dptr", &params->dptr);
                       return cuGraphAddMemAllocNode(o.add<CUgraphNode>("node"), s.graph, nullptr, 0, params);
                     }});
    table.push_back({"cuGraphAddNode", block.way, block.crossed, [=](Scene &s, Outputs &o) {
                       CUDA_MEM_ALLOC_NODE_PARAMS wanted = block_of(kMiB);
                       change(s, wanted);
                       auto *const params = o.hold<CUgraphNodeParams>();
                       params->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
                       params->alloc.poolProps = wanted.poolProps;
                       params->alloc.bytesize = wanted.bytesize;
                       params->alloc.accessDescCount = wanted.accessDescCount;
                       o.watch("dptr", &params->alloc.dptr);
                       return cuGraphAddNode(o.add<CUgraphNode>("node"), s.graph, nullptr, nullptr, 0, params);
                     }});
  }
}

void add_instantiations(Table<Scene> &table) {
  const auto add = [&](const char *way, Crossed crossed, CUgraph Scene::*graph, unsigned long long flags) {
    table.push_back({"cuGraphInstantiate", way, crossed, [=](Scene &s, Outputs &o) {
                       return cuGraphInstantiate(o.add<CUgraphExec>("exec"), s.*graph, flags);
                     }});
    table.push_back({"cuGraphInstantiateWithParams", way, crossed, [=](Scene &s, Outputs &o) {
                       auto *const params = o.hold<CUDA_GRAPH_INSTANTIATE_PARAMS>();
                       params->flags = flags;
                       o.watch("error_node", &params->hErrNode_out);
                       o.watch("result", &params->result_out);
                       return cuGraphInstantiateWithParams(o.add<CUgraphExec>("exec"), s.*graph, params);
                     }});
  };
  add("valid", Crossed::kCalls, &Scene::plain, 0);
  add("bad_flags", Crossed::kNot, &Scene::plain, 0x8000);
  add("a_second_time_with_memory", Crossed::kCalls, &Scene::allocating, 0);
  add("for_launches_by_the_device_of_nothing", Crossed::kNot, &Scene::plain, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
  table.push_back({"cuGraphInstantiate", "no_graph", Crossed::kNot,
                   [](Scene &, Outputs &o) { return cuGraphInstantiate(o.add<CUgraphExec>("exec"), nullptr, 0); }});
  const auto update = [&](const char *way, CUgraphExec Scene::*exec, CUgraph Scene::*graph) {
    table.push_back({"cuGraphExecUpdate", way, Crossed::kCalls, [=](Scene &s, Outputs &o) {
                       auto *const info = o.hold<CUgraphExecUpdateResultInfo>();
                       o.watch("result", &info->result);
                       o.watch("error_node", &info->errorNode);
                       o.watch("error_from_node", &info->errorFromNode);
                       return cuGraphExecUpdate(s.*exec, s.*graph, info);
                     }});
  };
  update("valid", &Scene::exec, &Scene::plain);
  update("other_nodes", &Scene::exec, &Scene::two_nodes);
  update("from_one_with_memory", &Scene::exec, &Scene::allocating);
  update("to_one_with_memory", &Scene::allocating_exec, &Scene::plain);
  table.push_back({"cuGraphClone", "with_memory", Crossed::kCalls,
                   [](Scene &s, Outputs &o) { return cuGraphClone(o.add<CUgraph>("clone"), s.allocating); }});
}

CUstream new_capture(CUstreamCaptureMode mode) {
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  must(cuStreamBeginCapture(stream, mode));
  return stream;
}

Table<Scene> graphs() {
  Table<Scene> table;
  add_allocations(table);
  add_instantiations(table);
  table.push_back({"cuStreamEndCapture", "without_a_capture", Crossed::kStreams,
                   [](Scene &s, Outputs &o) { return cuStreamEndCapture(s.stream, o.add<CUgraph>("graph")); }});
  table.push_back({"cuStreamEndCapture", "in_the_default_stream", Crossed::kCalls,
                   [](Scene &, Outputs &o) { return cuStreamEndCapture(nullptr, o.add<CUgraph>("graph")); }});
  table.push_back({"cuStreamEndCapture", "in_another_thread", Crossed::kNot, [](Scene &s, Outputs &o) {
                     const CUstream stream = new_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
                     auto *const graph = o.add<CUgraph>("graph");
                     CUresult code = CUDA_SUCCESS;
                     std::thread([&] {
                       cuCtxSetCurrent(s.context);
                       code = cuStreamEndCapture(stream, graph);
                     }).join();
                     CUgraph rest = nullptr;
                     cuStreamEndCapture(stream, &rest);
                     cuStreamDestroy(stream);
                     return code;
                   }});
  const auto attribute = [&](const char *way, Crossed crossed, int device, int number) {
    table.push_back({"cuDeviceGetGraphMemAttribute", way, crossed, [=](Scene &, Outputs &o) {
                       return cuDeviceGetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(number),
                                                           o.add<cuuint64_t>("value"));
                     }});
  };
  attribute("valid", Crossed::kCalls, 0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
  attribute("bad_attribute", Crossed::kNot, 0, 99);
  attribute("no_such_device", Crossed::kNot, kNoDevice, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
  return table;
}

Table<Scene> contexts() {
  Table<Scene> table;
  const auto create = [&](const char *way, unsigned flags, int device) {
    table.push_back({"cuCtxCreate", way, Crossed::kCalls, [=](Scene &, Outputs &o) {
                       return cuCtxCreate(o.add<CUcontext>("pctx"), nullptr, flags, device);
                     }});
  };
  create("bad_flags", 0x80000000u, 0);
  create("no_such_device", 0, kNoDevice);
  for (const int device : {0, kNoDevice, -1}) {
    const char *const way = device == 0 ? "valid" : device < 0 ? "negative_device" : "no_such_device";
    table.push_back({"cuDevicePrimaryCtxRetain", way, Crossed::kCalls,
                     [=](Scene &, Outputs &o) { return cuDevicePrimaryCtxRetain(o.add<CUcontext>("pctx"), device); }});
  }
  table.push_back({"cuCtxGetDevice", "valid", Crossed::kCalls,
                   [](Scene &, Outputs &o) { return cuCtxGetDevice(o.add<CUdevice>("device")); }});
  table.push_back({"cuCtxGetCurrent", "valid", Crossed::kCalls,
                   [](Scene &, Outputs &o) { return cuCtxGetCurrent(o.add<CUcontext>("pctx")); }});
  table.push_back({"cuCtxGetLimit", "bad_limit", Crossed::kCalls, [](Scene &, Outputs &o) {
                     return cuCtxGetLimit(o.add<std::size_t>("pvalue"), static_cast<CUlimit>(15));
                   }});
  using Attach = CUresult (*)(CUcontext *, unsigned);
  for (const unsigned flags : {0u, 1u}) {
    table.push_back({"cuCtxAttach", flags == 0 ? "valid" : "bad_flags", Crossed::kCalls, [=](Scene &, Outputs &o) {
                       return reinterpret_cast<Attach>(export_of("cuCtxAttach"))(o.add<CUcontext>("pctx"), flags);
                     }});
  }
  const auto green = [&](const char *way, int device, unsigned flags) {
    table.push_back({"cuGreenCtxCreate", way, Crossed::kNot, [=](Scene &, Outputs &o) {
                       return cuGreenCtxCreate(o.add<CUgreenCtx>("phCtx"), nullptr, device, flags);
                     }});
  };
  green("no_resources", 0, CU_GREEN_CTX_DEFAULT_STREAM);
  green("no_resources_and_no_flags", 0, 0);
  green("no_resources_and_no_such_device", kNoDevice, CU_GREEN_CTX_DEFAULT_STREAM);
  table.push_back({"cuCtxFromGreenCtx", "null", Crossed::kNot,
                   [](Scene &, Outputs &o) { return cuCtxFromGreenCtx(o.add<CUcontext>("pContext"), nullptr); }});
  return table;
}

Table<Scene> code() {
  Table<Scene> table;
  static constexpr char kNonsense[64] = "This is no code of any kind.";
  static constexpr char kBroken[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry broken( {\n";
  table.push_back({"cuModuleLoad", "no_such_file", Crossed::kCalls, [](Scene &, Outputs &o) {
                     return cuModuleLoad(o.add<CUmodule>("module"), "/nowhere/at/all.cubin");
                   }});
  for (const char *const image : {kNonsense, kBroken}) {
    const char *const way = image == kNonsense ? "nonsense" : "broken_ptx";
    table.push_back({"cuModuleLoadData", way, Crossed::kCalls,
                     [=](Scene &, Outputs &o) { return cuModuleLoadData(o.add<CUmodule>("module"), image); }});
    table.push_back({"cuModuleLoadDataEx", way, Crossed::kNot, [=](Scene &, Outputs &o) {
                       return cuModuleLoadDataEx(o.add<CUmodule>("module"), image, 0, nullptr, nullptr);
                     }});
  }
  table.push_back({"cuLibraryGetModule", "null", Crossed::kCalls,
                   [](Scene &, Outputs &o) { return cuLibraryGetModule(o.add<CUmodule>("pMod"), nullptr); }});
  table.push_back({"cuLibraryGetGlobal", "null", Crossed::kCalls, [](Scene &, Outputs &o) {
                     auto *const pointer = o.add<CUdeviceptr>("dptr");
                     return cuLibraryGetGlobal(pointer, o.add<std::size_t>("bytes"), nullptr, "nothing");
                   }});
  table.push_back({"cuKernelGetFunction", "null", Crossed::kCalls,
                   [](Scene &, Outputs &o) { return cuKernelGetFunction(o.add<CUfunction>("pFunc"), nullptr); }});
  return table;
}

Table<Scene> look_ups() {
  Table<Scene> table;
  using First = CUresult (*)(const char *, void **, int, cuuint64_t);
  const auto add = [&](const char *way, const char *name, int version, cuuint64_t flags) {
    table.push_back({"cuGetProcAddress", way, Crossed::kNot, [=](Scene &, Outputs &o) {
                       auto *const function = o.add<void *>("pfn");
                       return cuGetProcAddress(name, function, version, flags,
                                               o.add<CUdriverProcAddressQueryResult>("status"));
                     }});
    table.push_back({"cuGetProcAddress_without_status", way, Crossed::kNot, [=](Scene &, Outputs &o) {
                       auto *const function = o.add<void *>("pfn");
                       return cuGetProcAddress(name, function, version, flags, nullptr);
                     }});
    table.push_back({"cuGetProcAddress_of_CUDA_11", way, Crossed::kNot, [=](Scene &, Outputs &o) {
                       return reinterpret_cast<First>(export_of("cuGetProcAddress"))(name, o.add<void *>("pfn"),
                                                                                     version, flags);
                     }});
  };
  // Hooked and not; a hooked name is answered by the library that hooks it.
  add("hooked", "cuMemAlloc", 12000, 0);
  add("not_hooked", "cuEventQuery", 12000, 0);
  add("unknown", "cuNoSuchFunction", 12000, 0);
  add("empty", "", 12000, 0);
  add("hooked_before_its_time", "cuMemAllocAsync", 11000, 0);
  add("not_hooked_before_its_time", "cuMemAddressReserve", 9000, 0);
  add("hooked_in_a_version_to_come", "cuMemAlloc", 99000, 0);
  add("hooked_with_bad_flags", "cuMemAlloc", 12000, 0x80);
  add("hooked_with_both_flags", "cuMemAlloc", 12000, 3);
  add("not_hooked_with_bad_flags", "cuEventQuery", 12000, 0x80);
  add("unknown_with_bad_flags", "cuNoSuchFunction", 12000, 0x80);
  add("hooked_in_version_0", "cuMemAlloc", 0, 0);
  add("hooked_in_a_negative_version", "cuMemAlloc", -1, 0);
  add("no_name", nullptr, 12000, 0);
  return table;
}

// Without a place for the output. What does not come back takes its process along.
Table<Scene> no_output() {
  Table<Scene> table;
  const auto add = [&](const char *call, const char *way, const std::function<CUresult(Scene &)> &act) {
    table.push_back({call, way, Crossed::kNot, [=](Scene &s, Outputs &) { return act(s); }});
  };
  table.push_back({"cuGraphAddMemAllocNode", "no_node", Crossed::kNot, [](Scene &s, Outputs &o) {
                     auto *const params = o.hold<CUDA_MEM_ALLOC_NODE_PARAMS>();
                     *params = block_of(kMiB);
                     o.watch("dptr", &params->dptr);
                     return cuGraphAddMemAllocNode(nullptr, s.graph, nullptr, 0, params);
                   }});
  table.push_back({"cuGraphAddMemAllocNode", "no_description", Crossed::kNot, [](Scene &s, Outputs &o) {
                     return cuGraphAddMemAllocNode(o.add<CUgraphNode>("node"), s.graph, nullptr, 0, nullptr);
                   }});
  table.push_back({"cuGraphAddMemAllocNode", "no_graph", Crossed::kNot, [](Scene &, Outputs &o) {
                     auto *const params = o.hold<CUDA_MEM_ALLOC_NODE_PARAMS>();
                     *params = block_of(kMiB);
                     o.watch("dptr", &params->dptr);
                     return cuGraphAddMemAllocNode(o.add<CUgraphNode>("node"), nullptr, nullptr, 0, params);
                   }});
  add("cuGraphInstantiate", "no_output", [](Scene &s) { return cuGraphInstantiate(nullptr, s.plain, 0); });
  add("cuGraphExecUpdate", "no_output", [](Scene &s) { return cuGraphExecUpdate(s.exec, s.plain, nullptr); });
  add("cuStreamEndCapture", "no_output", [](Scene &) {
    const CUstream stream = new_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
    const CUresult code = cuStreamEndCapture(stream, nullptr);
    cuStreamDestroy(stream);
    return code;
  });
  add("cuCtxCreate", "no_output", [](Scene &) { return cuCtxCreate(nullptr, nullptr, 0, 0); });
  add("cuDevicePrimaryCtxRetain", "no_output", [](Scene &) { return cuDevicePrimaryCtxRetain(nullptr, 0); });
  add("cuModuleLoadData", "no_output", [](Scene &) { return cuModuleLoadData(nullptr, "nonsense"); });
  table.push_back({"cuModuleLoadData", "no_image", Crossed::kNot,
                   [](Scene &, Outputs &o) { return cuModuleLoadData(o.add<CUmodule>("module"), nullptr); }});
  add("cuGetProcAddress", "no_output",
      [](Scene &) { return cuGetProcAddress("cuMemAlloc", nullptr, 12000, 0, nullptr); });
  return table;
}

const Tables<Scene> &tables() {
  static const Tables<Scene> all = {{"graphs", graphs()},
                                    {"contexts", contexts()},
                                    {"code", code()},
                                    {"look_ups", look_ups()},
                                    {"no_output", no_output()}};
  return all;
}

void play(Test &test) {
  ask(test, tables().at(test.name()));
}

}  // namespace

int main(int count, char **arguments) {
  return question::run_tables<Scene>(
      count, arguments, tables,
      {{"graphs", play}, {"contexts", play}, {"code", play}, {"look_ups", play}, {"no_output", play}});
}
