// What do the calls that allocate do to their outputs where they are refused: for lack of memory, for what they were
// asked, without a context, in a destroyed one, in a capture? Each is also called as it should be.
#include <sys/mman.h>

#include <limits>

#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/outputs.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kHuge = std::size_t{1} << 50;  // more than any device, host or address space has
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
                       return cuMemAllocPitch(pointer, pitch, width == kHuge ? s.too_much : width, height, element);
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
  add("too_much", Crossed::kCalls, kHuge, 1, 4);
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
  add("too_much_and_element_of_3", Crossed::kNot, kHuge, 1, 3);
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
                                          bytes == kHuge ? s.too_much : bytes, &memory, flags);
                     }});
  };
  using Change = CUmemAllocationProp &;
  create("valid", Crossed::kCalls, kGranule);
  create("zero", Crossed::kCalls, 0);
  create("half_a_granule", Crossed::kNot, kMiB);
  create("too_much", Crossed::kCalls, kHuge);
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
  create("no_such_device_and_too_much", Crossed::kNot, kHuge, [](Change m) { m.location.id = kNoDevice; });
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

template <class Shape>
Shape shape(std::size_t width, std::size_t height, CUarray_format format, unsigned channels) {
  Shape wanted = {};
  wanted.Width = width;
  wanted.Height = height;
  wanted.Format = format;
  wanted.NumChannels = channels;
  return wanted;
}

constexpr auto kBadFormat = static_cast<CUarray_format>(0x7f);
constexpr unsigned kBadArrayFlags = 0x40000000;

AllocatingTable arrays() {
  AllocatingTable table;
  using Flat = CUDA_ARRAY_DESCRIPTOR;
  using Deep = CUDA_ARRAY3D_DESCRIPTOR;
  const auto flat = [&](const char *way, Crossed crossed, const Flat &wanted) {
    table.push_back({"cuArrayCreate", way, crossed, [=](Scene &s, Outputs &o) {
                       // 128 GiB are the most that the largest flat array has.
                       if (wanted.NumChannels == 4 && s.too_much > 128 * kGiB) skip("the device may have that much");
                       return cuArrayCreate(o.add<CUarray>("handle"), &wanted);
                     }});
  };
  flat("valid", Crossed::kCalls, shape<Flat>(64, 64, CU_AD_FORMAT_FLOAT, 1));
  flat("no_width", Crossed::kCalls, shape<Flat>(0, 64, CU_AD_FORMAT_FLOAT, 1));
  flat("too_wide", Crossed::kNot, shape<Flat>(std::size_t{1} << 24, 64, CU_AD_FORMAT_FLOAT, 1));
  flat("too_much", Crossed::kCalls, shape<Flat>(131072, 65536, CU_AD_FORMAT_FLOAT, 4));
  flat("largest", Crossed::kNot, shape<Flat>(kMost, kMost, CU_AD_FORMAT_FLOAT, 1));
  flat("bad_format", Crossed::kNot, shape<Flat>(64, 64, kBadFormat, 1));
  flat("no_channels", Crossed::kNot, shape<Flat>(64, 64, CU_AD_FORMAT_FLOAT, 0));
  flat("three_channels", Crossed::kNot, shape<Flat>(64, 64, CU_AD_FORMAT_FLOAT, 3));
  const auto described = [](std::size_t width, std::size_t height, std::size_t depth, unsigned channels,
                            unsigned flags) {
    Deep wanted = shape<Deep>(width, height, CU_AD_FORMAT_FLOAT, channels);
    wanted.Depth = depth;
    wanted.Flags = flags;
    return wanted;
  };
  const auto deep = [&](const char *way, Crossed crossed, const Deep &wanted) {
    table.push_back({"cuArray3DCreate", way, crossed,
                     [=](Scene &, Outputs &o) { return cuArray3DCreate(o.add<CUarray>("handle"), &wanted); }});
  };
  const auto levels = [&](const char *way, Crossed crossed, unsigned count, const Deep &wanted) {
    table.push_back({"cuMipmappedArrayCreate", way, crossed, [=](Scene &, Outputs &o) {
                       return cuMipmappedArrayCreate(o.add<CUmipmappedArray>("handle"), &wanted, count);
                     }});
  };
  const Deep good = described(64, 64, 0, 1, 0), huge = described(16384, 16384, 16384, 4, 0),
             empty = described(0, 64, 0, 1, 0), flagged = described(64, 64, 0, 1, kBadArrayFlags);
  deep("valid", Crossed::kCalls, good);
  deep("no_width", Crossed::kCalls, empty);
  deep("no_height_but_depth", Crossed::kNot, described(64, 0, 64, 1, 0));
  deep("too_wide", Crossed::kNot, described(std::size_t{1} << 24, 64, 0, 1, 0));
  deep("too_much", Crossed::kCalls, huge);
  deep("largest", Crossed::kNot, described(kMost, kMost, kMost, 1, 0));
  deep("bad_format", Crossed::kNot, shape<Deep>(64, 64, kBadFormat, 1));
  deep("three_channels", Crossed::kNot, described(64, 64, 0, 3, 0));
  deep("bad_flags", Crossed::kCalls, flagged);
  deep("layered_without_layers", Crossed::kNot, described(64, 64, 0, 1, CUDA_ARRAY3D_LAYERED));
  levels("valid", Crossed::kCalls, 3, good);
  levels("no_levels", Crossed::kNot, 0, good);
  levels("too_many_levels", Crossed::kNot, 99, good);
  levels("no_width", Crossed::kCalls, 1, empty);
  levels("too_much", Crossed::kCalls, 1, huge);
  levels("bad_format", Crossed::kNot, 3, shape<Deep>(64, 64, kBadFormat, 1));
  levels("bad_flags", Crossed::kNot, 3, flagged);
  return table;
}

AllocatingTable host() {
  AllocatingTable table;
  struct Size {
    const char *way;
    Crossed crossed;
    std::size_t bytes;
  };
  for (const Size &size : {Size{"valid", Crossed::kCalls, kMiB}, Size{"zero", Crossed::kCalls, 0},
                           Size{"huge", Crossed::kCalls, kHuge}, Size{"largest", Crossed::kNot, kMost}}) {
    const std::size_t bytes = size.bytes;
    table.push_back({"cuMemAllocHost", size.way, size.crossed,
                     [=](Scene &, Outputs &o) { return cuMemAllocHost(o.add<void *>("pp"), bytes); }});
    table.push_back({"cuMemHostAlloc", size.way, size.crossed, [=](Scene &, Outputs &o) {
                       return cuMemHostAlloc(o.add<void *>("pp"), bytes, CU_MEMHOSTALLOC_PORTABLE);
                     }});
  }
  const auto bad_flags = [&](const char *way, std::size_t bytes) {
    table.push_back({"cuMemHostAlloc", way, Crossed::kNot,
                     [=](Scene &, Outputs &o) { return cuMemHostAlloc(o.add<void *>("pp"), bytes, 0x8000); }});
  };
  bad_flags("bad_flags", kMiB);
  bad_flags("huge_and_bad_flags", kHuge);
  const auto enter = [&](const char *way, Crossed crossed, std::size_t bytes, unsigned flags) {
    table.push_back({"cuMemHostRegister", way, crossed, [=](Scene &, Outputs &) {
                       void *const pages =
                           mmap(nullptr, 2 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                       munmap(static_cast<char *>(pages) + kMiB, kMiB);
                       const CUresult code = cuMemHostRegister(pages, bytes, flags);
                       if (code == CUDA_SUCCESS) cuMemHostUnregister(pages);
                       munmap(pages, kMiB);
                       return code;
                     }});
  };
  enter("valid", Crossed::kCalls, kMiB, 0);
  enter("zero", Crossed::kCalls, 0, 0);
  enter("beyond_the_mapping", Crossed::kCalls, 2 * kMiB, 0);
  enter("bad_flags", Crossed::kNot, kMiB, 0x8000);
  table.push_back({"cuMemHostRegister", "no_address", Crossed::kNot,
                   [](Scene &, Outputs &) { return cuMemHostRegister(nullptr, kMiB, 0); }});
  return table;
}

// The exports of CUDA 2.0, whose addresses have 32 bits. No current header has them under their own name.
AllocatingTable legacy() {
  AllocatingTable table;
  const auto add = [&](const std::string &way, Crossed crossed, unsigned bytes) {
    table.push_back({"cuMemAlloc_of_32_bits", way, crossed, [=](Scene &, Outputs &o) {
                       using Call = CUresult (*)(unsigned *, unsigned);
                       return reinterpret_cast<Call>(export_of("cuMemAlloc"))(o.add<unsigned>("dptr"), bytes);
                     }});
    table.push_back({"cuMemAllocHost_of_32_bits", way, crossed, [=](Scene &, Outputs &o) {
                       using Call = CUresult (*)(void **, unsigned);
                       return reinterpret_cast<Call>(export_of("cuMemAllocHost"))(o.add<void *>("pp"), bytes);
                     }});
  };
  add("valid", Crossed::kCalls, kMiB);
  add("zero", Crossed::kNot, 0);
  const auto rows = [&](const char *way, unsigned width, unsigned height, unsigned element) {
    table.push_back({"cuMemAllocPitch_of_32_bits", way, Crossed::kNot, [=](Scene &, Outputs &o) {
                       using Call = CUresult (*)(unsigned *, unsigned *, unsigned, unsigned, unsigned);
                       auto *const pointer = o.add<unsigned>("dptr");
                       return reinterpret_cast<Call>(export_of("cuMemAllocPitch"))(pointer, o.add<unsigned>("pitch"),
                                                                                   width, height, element);
                     }});
  };
  rows("valid", 1000, 16, 4);
  rows("no_width", 0, 16, 4);
  rows("overflow", 1u << 20, 1u << 20, 4);
  rows("element_of_3", 1000, 16, 3);
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
  const auto flat = shape<CUDA_ARRAY_DESCRIPTOR>(64, 64, CU_AD_FORMAT_FLOAT, 1);
  const auto deep = shape<CUDA_ARRAY3D_DESCRIPTOR>(64, 64, CU_AD_FORMAT_FLOAT, 1);
  add("cuArrayCreate", [=](Scene &) { return cuArrayCreate(nullptr, &flat); });
  add("cuArray3DCreate", [=](Scene &) { return cuArray3DCreate(nullptr, &deep); });
  add("cuMipmappedArrayCreate", [=](Scene &) { return cuMipmappedArrayCreate(nullptr, &deep, 3); });
  add("cuMemAllocHost", [](Scene &) { return cuMemAllocHost(nullptr, kMiB); });
  add("cuMemHostAlloc", [](Scene &) { return cuMemHostAlloc(nullptr, kMiB, 0); });
  const auto no_input = [&](const char *call, const std::function<CUresult(Outputs &)> &act) {
    table.push_back({call, "no_description", Crossed::kNot, [=](Scene &, Outputs &o) { return act(o); }});
  };
  no_input("cuMemPoolCreate", [](Outputs &o) { return cuMemPoolCreate(o.add<CUmemoryPool>("pool"), nullptr); });
  no_input("cuMemCreate",
           [](Outputs &o) { return cuMemCreate(o.add<CUmemGenericAllocationHandle>("handle"), kGranule, nullptr, 0); });
  no_input("cuArrayCreate", [](Outputs &o) { return cuArrayCreate(o.add<CUarray>("handle"), nullptr); });
  no_input("cuArray3DCreate", [](Outputs &o) { return cuArray3DCreate(o.add<CUarray>("handle"), nullptr); });
  no_input("cuMipmappedArrayCreate",
           [](Outputs &o) { return cuMipmappedArrayCreate(o.add<CUmipmappedArray>("handle"), nullptr, 3); });
  return table;
}

const Tables<Scene> &tables() {
  static const Tables<Scene> all = {{"device", device()}, {"pitched", pitched()}, {"stream_ordered", stream_ordered()},
                                    {"pools", pools()},   {"handles", handles()}, {"arrays", arrays()},
                                    {"host", host()},     {"legacy", legacy()},   {"no_output", no_output()}};
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
                                      {"arrays", play},
                                      {"host", play},
                                      {"legacy", play},
                                      {"no_output", play}});
}
