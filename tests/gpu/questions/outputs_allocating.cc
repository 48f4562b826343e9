// What do the calls that allocate do to their outputs where they are refused: for lack of memory, for what they were
// asked, without a context, in a destroyed one, in a capture? Each is also called as it should be.
#include <limits>

#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"
#include "tests/gpu/questions/tables.h"

namespace {

using namespace question;

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kHuge = std::size_t{1} << 50;  // more than any device, host or address space has
constexpr std::size_t kTooMuch = kMost - 1;          // in a table: what the scene calls too much
constexpr int kNoDevice = 99;

CUmemPoolProps pool_of_device(std::size_t most = 0) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  props.maxSize = most;
  return props;
}

struct Scene : Stage {
  Scene() {
    const CUmemPoolProps any = pool_of_device(), limited = pool_of_device(64 * kMiB);
    must(cuMemPoolCreate(&pool, &any));
    must(cuMemPoolCreate(&small_pool, &limited));
  }
  CUmemoryPool pool = nullptr, small_pool = nullptr;
};

using AllocatingTable = Table<Scene>;

// Half of the device, so that what it has is not free: the call may find that out later than that it has not so much.
class Half {
 public:
  explicit Half(const Scene &scene) : device_(scene.too_much - kGiB) {
    if (free_bytes() < device_ / 8 * 5) skip("others use the device");
    must(cuMemAlloc(&block_, device_ / 2));
  }
  ~Half() { cuMemFree(block_); }
  Half(const Half &) = delete;
  Half &operator=(const Half &) = delete;
  std::size_t more_than_is_free() const { return device_ / 4 * 3 / kGranule * kGranule; }

 private:
  std::size_t device_;
  CUdeviceptr block_ = 0;
};

void add_sizes(AllocatingTable &table, const std::string &call, Crossed crossed,
               const std::function<CUresult(Scene &, CUdeviceptr *, std::size_t)> &allocate) {
  const auto add = [&](const char *way, Crossed how, const std::function<std::size_t(const Scene &)> &bytes) {
    table.push_back(
        {call, way, how, [=](Scene &s, Outputs &o) { return allocate(s, o.add<CUdeviceptr>("dptr"), bytes(s)); }});
  };
  add("valid", crossed, [](const Scene &) { return kMiB; });
  add("zero", crossed, [](const Scene &) { return std::size_t{0}; });
  add("too_much", crossed, [](const Scene &s) { return s.too_much; });
  add("largest", Crossed::kNot, [](const Scene &) { return kMost; });
  table.push_back({call, "more_than_is_free", Crossed::kNot, [=](Scene &s, Outputs &o) {
                     const Half half(s);
                     return allocate(s, o.add<CUdeviceptr>("dptr"), half.more_than_is_free());
                   }});
}

AllocatingTable device() {
  AllocatingTable table;
  add_sizes(table, "cuMemAlloc", Crossed::kCalls,
            [](Scene &, CUdeviceptr *to, std::size_t bytes) { return cuMemAlloc(to, bytes); });
  const auto managed = [&](const char *way, Crossed crossed, std::size_t bytes, unsigned flags) {
    table.push_back({"cuMemAllocManaged", way, crossed,
                     [=](Scene &, Outputs &o) { return cuMemAllocManaged(o.add<CUdeviceptr>("dptr"), bytes, flags); }});
  };
  managed("valid", Crossed::kCalls, kMiB, CU_MEM_ATTACH_GLOBAL);
  managed("valid_for_the_host", Crossed::kNot, kMiB, CU_MEM_ATTACH_HOST);
  managed("zero", Crossed::kCalls, 0, CU_MEM_ATTACH_GLOBAL);
  managed("huge", Crossed::kCalls, kHuge, CU_MEM_ATTACH_GLOBAL);
  managed("largest", Crossed::kNot, kMost, CU_MEM_ATTACH_GLOBAL);
  managed("no_flags", Crossed::kNot, kMiB, 0);
  managed("bad_flags", Crossed::kCalls, kMiB, 0x80);
  managed("two_flags", Crossed::kNot, kMiB, CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST);
  managed("single", Crossed::kNot, kMiB, CU_MEM_ATTACH_SINGLE);
  managed("zero_and_bad_flags", Crossed::kNot, 0, 0x80);
  managed("huge_and_bad_flags", Crossed::kNot, kHuge, 0x80);
  return table;
}

AllocatingTable pitched() {
  AllocatingTable table;
  const auto add = [&](const char *way, Crossed crossed, std::size_t width, std::size_t height, unsigned element) {
    table.push_back({"cuMemAllocPitch", way, crossed, [=](Scene &s, Outputs &o) {
                       auto *const pointer = o.add<CUdeviceptr>("dptr");
                       auto *const pitch = o.add<std::size_t>("pitch");
                       return cuMemAllocPitch(pointer, pitch, width == kTooMuch ? s.too_much : width, height, element);
                     }});
  };
  constexpr std::size_t kHalf = std::size_t{1} << 63;
  table.push_back({"cuMemAllocPitch", "more_than_is_free", Crossed::kNot, [](Scene &s, Outputs &o) {
                     const Half half(s);
                     auto *const pointer = o.add<CUdeviceptr>("dptr");
                     return cuMemAllocPitch(pointer, o.add<std::size_t>("pitch"), half.more_than_is_free(), 1, 4);
                   }});
  add("valid", Crossed::kCalls, 1000, 16, 4);
  add("no_width", Crossed::kCalls, 0, 16, 4);
  add("no_height", Crossed::kCalls, 1000, 0, 4);
  add("no_width_and_no_height", Crossed::kNot, 0, 0, 4);
  add("too_much", Crossed::kCalls, kTooMuch, 1, 4);
  add("too_much_in_rows", Crossed::kNot, std::size_t{1} << 30, std::size_t{1} << 20, 4);
  add("overflow", Crossed::kCalls, std::size_t{1} << 40, std::size_t{1} << 40, 4);
  add("overflow_to_zero", Crossed::kNot, kHalf, 2, 4);
  add("overflow_to_little", Crossed::kNot, (std::size_t{1} << 32) + 512, std::size_t{1} << 32, 4);
  add("overflow_of_the_pitch", Crossed::kNot, kMost, 1, 4);
  add("largest_height", Crossed::kNot, 1000, kMost, 4);
  for (const unsigned size : {0u, 1u, 2u, 3u, 5u, 8u, 32u}) {
    add(("element_of_" + std::to_string(size)).c_str(), size == 3 ? Crossed::kCalls : Crossed::kNot, 1000, 16, size);
  }
  add("no_width_and_element_of_3", Crossed::kNot, 0, 16, 3);
  add("too_much_and_element_of_3", Crossed::kNot, kTooMuch, 1, 3);
  add("overflow_and_element_of_3", Crossed::kNot, std::size_t{1} << 40, std::size_t{1} << 40, 3);
  return table;
}

AllocatingTable stream_ordered() {
  AllocatingTable table;
  add_sizes(table, "cuMemAllocAsync", Crossed::kStreams,
            [](Scene &s, CUdeviceptr *to, std::size_t bytes) { return cuMemAllocAsync(to, bytes, s.stream); });
  add_sizes(table, "cuMemAllocFromPoolAsync", Crossed::kStreams, [](Scene &s, CUdeviceptr *to, std::size_t bytes) {
    return cuMemAllocFromPoolAsync(to, bytes, s.pool, s.stream);
  });
  const auto in_default_stream = [&](const char *way, std::size_t bytes) {
    table.push_back({"cuMemAllocAsync", way, Crossed::kCalls,
                     [=](Scene &, Outputs &o) { return cuMemAllocAsync(o.add<CUdeviceptr>("dptr"), bytes, nullptr); }});
  };
  in_default_stream("valid_in_the_default_stream", kMiB);
  in_default_stream("zero_in_the_default_stream", 0);
  const auto from = [&](const char *way, std::size_t bytes, CUmemoryPool Scene::*pool) {
    table.push_back({"cuMemAllocFromPoolAsync", way, Crossed::kNot, [=](Scene &s, Outputs &o) {
                       const CUmemoryPool chosen = pool == nullptr ? nullptr : s.*pool;
                       return cuMemAllocFromPoolAsync(o.add<CUdeviceptr>("dptr"), bytes, chosen, s.stream);
                     }});
  };
  from("more_than_the_pool_may_have", 256 * kMiB, &Scene::small_pool);
  from("no_pool", kMiB, nullptr);
  from("zero_and_no_pool", 0, nullptr);
  return table;
}

AllocatingTable pools() {
  AllocatingTable table;
  const auto add = [&](const char *way, Crossed crossed, const std::function<void(CUmemPoolProps &)> &change) {
    table.push_back({"cuMemPoolCreate", way, crossed, [=](Scene &, Outputs &o) {
                       CUmemPoolProps props = pool_of_device();
                       change(props);
                       return cuMemPoolCreate(o.add<CUmemoryPool>("pool"), &props);
                     }});
  };
  add("valid", Crossed::kCalls, [](CUmemPoolProps &) {});
  add("bad_type", Crossed::kCalls, [](CUmemPoolProps &p) { p.allocType = CU_MEM_ALLOCATION_TYPE_INVALID; });
  add("no_location", Crossed::kNot, [](CUmemPoolProps &p) { p.location = {CU_MEM_LOCATION_TYPE_INVALID, 0}; });
  add("no_such_device", Crossed::kNot, [](CUmemPoolProps &p) { p.location.id = kNoDevice; });
  add("negative_device", Crossed::kNot, [](CUmemPoolProps &p) { p.location.id = -1; });
  add("bad_handle_type", Crossed::kNot,
      [](CUmemPoolProps &p) { p.handleTypes = static_cast<CUmemAllocationHandleType>(0x40); });
  add("handle_type_of_windows", Crossed::kNot, [](CUmemPoolProps &p) { p.handleTypes = CU_MEM_HANDLE_TYPE_WIN32; });
  add("largest_maximum", Crossed::kNot, [](CUmemPoolProps &p) { p.maxSize = kMost; });
  add("bad_usage", Crossed::kNot, [](CUmemPoolProps &p) { p.usage = 0x8000; });
  add("reserved_not_zero", Crossed::kNot, [](CUmemPoolProps &p) { p.reserved[0] = 1; });
  const auto of_device = [&](const std::string &call, CUresult (*get)(CUmemoryPool *, CUdevice)) {
    for (const int device : {0, kNoDevice, -1}) {
      const char *const way = device == 0 ? "valid" : device < 0 ? "negative_device" : "no_such_device";
      table.push_back({call, way, device == 0 ? Crossed::kCalls : Crossed::kNot,
                       [=](Scene &, Outputs &o) { return get(o.add<CUmemoryPool>("pool"), device); }});
    }
  };
  of_device("cuDeviceGetDefaultMemPool", cuDeviceGetDefaultMemPool);
  of_device("cuDeviceGetMemPool", cuDeviceGetMemPool);
  return table;
}

AllocatingTable handles() {
  AllocatingTable table;
  const auto create = [&](
                          const char *way, Crossed crossed, std::size_t bytes,
                          const std::function<void(CUmemAllocationProp &)> &change = [](CUmemAllocationProp &) {},
                          unsigned long long flags = 0) {
    table.push_back({"cuMemCreate", way, crossed, [=](Scene &s, Outputs &o) {
                       CUmemAllocationProp memory = device_memory();
                       change(memory);
                       return cuMemCreate(o.add<CUmemGenericAllocationHandle>("handle"),
                                          bytes == kTooMuch ? s.too_much : bytes, &memory, flags);
                     }});
  };
  using Change = CUmemAllocationProp &;
  create("valid", Crossed::kCalls, kGranule);
  create("zero", Crossed::kCalls, 0);
  create("half_a_granule", Crossed::kNot, kMiB);
  create("too_much", Crossed::kCalls, kTooMuch);
  create("largest", Crossed::kNot, kMost / kGranule * kGranule);
  table.push_back({"cuMemCreate", "more_than_is_free", Crossed::kNot, [](Scene &s, Outputs &o) {
                     const Half half(s);
                     const CUmemAllocationProp memory = device_memory();
                     return cuMemCreate(o.add<CUmemGenericAllocationHandle>("handle"), half.more_than_is_free(),
                                        &memory, 0);
                   }});
  create(
      "bad_flags", Crossed::kCalls, kGranule, [](Change) {}, 1);
  create("bad_type", Crossed::kNot, kGranule, [](Change m) { m.type = CU_MEM_ALLOCATION_TYPE_INVALID; });
  create("no_location", Crossed::kNot, kGranule, [](Change m) { m.location = {CU_MEM_LOCATION_TYPE_INVALID, 0}; });
  create("no_such_device", Crossed::kNot, kGranule, [](Change m) { m.location.id = kNoDevice; });
  create("no_such_device_and_too_much", Crossed::kNot, kTooMuch, [](Change m) { m.location.id = kNoDevice; });
  create("bad_handle_type", Crossed::kNot, kGranule,
         [](Change m) { m.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(0x40); });
  create("handle_type_of_windows", Crossed::kNot, kGranule,
         [](Change m) { m.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32; });
  create("for_a_fabric", Crossed::kNot, kGranule, [](Change m) { m.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC; });
  create("bad_compression", Crossed::kNot, kGranule, [](Change m) { m.allocFlags.compressionType = 0x7f; });
  const auto reserve = [&](const char *way, Crossed crossed, std::size_t bytes, std::size_t alignment,
                           unsigned long long flags) {
    table.push_back({"cuMemAddressReserve", way, crossed, [=](Scene &, Outputs &o) {
                       return cuMemAddressReserve(o.add<CUdeviceptr>("ptr"), bytes, alignment, 0, flags);
                     }});
  };
  reserve("valid", Crossed::kCalls, kGranule, 0, 0);
  reserve("zero", Crossed::kCalls, 0, 0, 0);
  reserve("half_a_granule", Crossed::kNot, kMiB, 0, 0);
  reserve("huge", Crossed::kCalls, std::size_t{1} << 60, 0, 0);
  reserve("bad_alignment", Crossed::kNot, kGranule, 3 * kMiB, 0);
  reserve("bad_flags", Crossed::kNot, kGranule, 0, 0x80);
  return table;
}

// Without a place for the output. What does not come back takes its process along.
AllocatingTable no_output() {
  AllocatingTable table;
  const auto add = [&](const char *call, const std::function<CUresult(Scene &)> &act) {
    table.push_back({call, "no_output", Crossed::kNot, [=](Scene &s, Outputs &) { return act(s); }});
  };
  add("cuMemAlloc", [](Scene &) { return cuMemAlloc(nullptr, kMiB); });
  add("cuMemAllocPitch", [](Scene &) {
    std::size_t pitch = 0;
    return cuMemAllocPitch(nullptr, &pitch, 1000, 16, 4);
  });
  table.push_back({"cuMemAllocPitch", "no_pitch", Crossed::kNot, [](Scene &, Outputs &o) {
                     return cuMemAllocPitch(o.add<CUdeviceptr>("dptr"), nullptr, 1000, 16, 4);
                   }});
  add("cuMemAllocManaged", [](Scene &) { return cuMemAllocManaged(nullptr, kMiB, CU_MEM_ATTACH_GLOBAL); });
  add("cuMemAllocAsync", [](Scene &s) { return cuMemAllocAsync(nullptr, kMiB, s.stream); });
  add("cuMemAllocFromPoolAsync", [](Scene &s) { return cuMemAllocFromPoolAsync(nullptr, kMiB, s.pool, s.stream); });
  add("cuMemPoolCreate", [](Scene &) {
    const CUmemPoolProps props = pool_of_device();
    return cuMemPoolCreate(nullptr, &props);
  });
  add("cuMemCreate", [](Scene &) {
    const CUmemAllocationProp memory = device_memory();
    return cuMemCreate(nullptr, kGranule, &memory, 0);
  });
  add("cuMemAddressReserve", [](Scene &) { return cuMemAddressReserve(nullptr, kGranule, 0, 0, 0); });
  const auto no_input = [&](const char *call, const std::function<CUresult(Outputs &)> &act) {
    table.push_back({call, "no_description", Crossed::kNot, [=](Scene &, Outputs &o) { return act(o); }});
  };
  no_input("cuMemPoolCreate", [](Outputs &o) { return cuMemPoolCreate(o.add<CUmemoryPool>("pool"), nullptr); });
  no_input("cuMemCreate",
           [](Outputs &o) { return cuMemCreate(o.add<CUmemGenericAllocationHandle>("handle"), kGranule, nullptr, 0); });
  return table;
}

const Tables<Scene> &tables() {
  static const Tables<Scene> all = {{"device", device()}, {"pitched", pitched()}, {"stream_ordered", stream_ordered()},
                                    {"pools", pools()},   {"handles", handles()}, {"no_output", no_output()}};
  return all;
}

void play(Test &test) {
  ask(test, tables().at(test.name()));
}

}  // namespace

int main(int count, char **arguments) {
  return question::run_tables<Scene>(count, arguments, tables,
                                     {{"device", play},
                                      {"pitched", play},
                                      {"stream_ordered", play},
                                      {"pools", play},
                                      {"handles", play},
                                      {"no_output", play}});
}
