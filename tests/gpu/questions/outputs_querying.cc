// What do the calls that query memory do to their outputs where they are refused? As outputs_allocating.
#include "tests/gpu/questions/places.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

using Scene = Places;

constexpr int kNoDevice = 99;
constexpr auto kUnknown = static_cast<CUpointer_attribute>(31);

Table<Scene> memory() {
  Table<Scene> table;
  table.push_back({"cuMemGetInfo", "valid", Crossed::kCalls, [](Scene &, Outputs &o) {
                     auto *const free = o.add<std::size_t>("free");
                     return cuMemGetInfo(free, o.add<std::size_t>("total"));
                   }});
  for (const int device : {0, kNoDevice, -1}) {
    const char *const way = device == 0 ? "valid" : device < 0 ? "negative_device" : "no_such_device";
    table.push_back({"cuDeviceTotalMem", way, Crossed::kCalls,
                     [=](Scene &, Outputs &o) { return cuDeviceTotalMem(o.add<std::size_t>("bytes"), device); }});
  }
  // The exports of CUDA 2.0. No current header has them under their own name.
  table.push_back({"cuMemGetInfo_of_32_bits", "valid", Crossed::kCalls, [](Scene &, Outputs &o) {
                     using Call = CUresult (*)(unsigned *, unsigned *);
                     auto *const free = o.add<unsigned>("free");
                     return reinterpret_cast<Call>(export_of("cuMemGetInfo"))(free, o.add<unsigned>("total"));
                   }});
  table.push_back({"cuDeviceTotalMem_of_32_bits", "valid", Crossed::kCalls, [](Scene &, Outputs &o) {
                     using Call = CUresult (*)(unsigned *, CUdevice);
                     return reinterpret_cast<Call>(export_of("cuDeviceTotalMem"))(o.add<unsigned>("bytes"), 0);
                   }});
  add_places(table, "cuMemGetAddressRange", [](Scene &, Outputs &o, CUdeviceptr address) {
    auto *const base = o.add<CUdeviceptr>("pbase");
    return cuMemGetAddressRange(base, o.add<std::size_t>("psize"), address);
  });
  add_places(table, "cuMemRetainAllocationHandle", [](Scene &, Outputs &o, CUdeviceptr address) {
    return cuMemRetainAllocationHandle(o.add<CUmemGenericAllocationHandle>("handle"),
                                       reinterpret_cast<void *>(address));
  });
  add_places(table, "cuMemGetAccess", [](Scene &, Outputs &o, CUdeviceptr address) {
    const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return cuMemGetAccess(o.add<unsigned long long>("flags"), &here, address);
  });
  const auto in_pool = [&](const char *way, Crossed crossed, int attribute, bool without) {
    table.push_back({"cuMemPoolGetAttribute", way, crossed, [=](Scene &s, Outputs &o) {
                       return cuMemPoolGetAttribute(without ? nullptr : s.pool,
                                                    static_cast<CUmemPool_attribute>(attribute),
                                                    o.add<cuuint64_t>("value"));
                     }});
  };
  in_pool("valid", Crossed::kCalls, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, false);
  in_pool("bad_attribute", Crossed::kCalls, 15, false);
  in_pool("no_pool", Crossed::kNot, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, true);
  const auto access = [&](const char *way, Crossed crossed, CUmemLocation location) {
    table.push_back({"cuMemPoolGetAccess", way, crossed, [=](Scene &s, Outputs &o) {
                       CUmemLocation place = location;
                       return cuMemPoolGetAccess(o.add<CUmemAccess_flags>("flags"), s.pool, &place);
                     }});
  };
  access("valid", Crossed::kCalls, {CU_MEM_LOCATION_TYPE_DEVICE, 0});
  access("no_such_device", Crossed::kNot, {CU_MEM_LOCATION_TYPE_DEVICE, kNoDevice});
  access("no_location", Crossed::kNot, {CU_MEM_LOCATION_TYPE_INVALID, 0});
  return table;
}

struct Attribute {
  CUpointer_attribute number;
  const char *name;
  std::size_t bytes;
};

constexpr Attribute kAttributes[] = {
    {CU_POINTER_ATTRIBUTE_CONTEXT, "context", 8},
    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "memory_type", 4},
    {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, "device_pointer", 8},
    {CU_POINTER_ATTRIBUTE_HOST_POINTER, "host_pointer", 8},
    {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "sync_memops", 4},
    {CU_POINTER_ATTRIBUTE_BUFFER_ID, "buffer_id", 8},
    {CU_POINTER_ATTRIBUTE_IS_MANAGED, "is_managed", 4},
    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "device_ordinal", 4},
    {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "range_start", 8},
    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, "range_size", 8},
    {CU_POINTER_ATTRIBUTE_MAPPED, "mapped", 4},
    {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, "access_flags", 8},
    {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, "mempool_handle", 8},
    {kUnknown, "unknown", 8},
};

// The driver writes what it has; four bytes are compared where it writes no more than that.
CUresult ask_one(Outputs &outputs, const Attribute &attribute, CUdeviceptr address) {
  void *const place = attribute.bytes == 4 ? static_cast<void *>(outputs.add<unsigned>("data"))
                                           : static_cast<void *>(outputs.add<std::uint64_t>("data"));
  return cuPointerGetAttribute(place, attribute.number, address);
}

Table<Scene> pointers() {
  Table<Scene> table;
  for (const Attribute &attribute : kAttributes) {
    for (const Place &place : kPlaces) {
      const auto address = place.address;
      const bool crossed = attribute.number == CU_POINTER_ATTRIBUTE_MEMORY_TYPE && address == kPlaces[0].address;
      table.push_back({std::string("cuPointerGetAttribute_") + attribute.name, place.way,
                       crossed ? Crossed::kCalls : Crossed::kNot,
                       [=](Scene &s, Outputs &o) { return ask_one(o, attribute, address(s)); }});
    }
  }
  const auto several = [&](const std::string &way_of, unsigned count, int last) {
    for (const Place &place : kPlaces) {
      const auto address = place.address;
      table.push_back({"cuPointerGetAttributes", place.way + way_of, Crossed::kNot, [=](Scene &s, Outputs &o) {
                         CUpointer_attribute wanted[] = {
                             CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                             CU_POINTER_ATTRIBUTE_RANGE_SIZE, static_cast<CUpointer_attribute>(last)};
                         void *places[] = {o.add<unsigned>("memory_type"), o.add<CUdeviceptr>("device_pointer"),
                                           o.add<std::size_t>("range_size"), o.add<std::uint64_t>("last")};
                         return cuPointerGetAttributes(count, wanted, places, address(s));
                       }});
    }
  };
  several("", 4, CU_POINTER_ATTRIBUTE_BUFFER_ID);
  several("_and_an_unknown_attribute", 4, kUnknown);
  several("_and_no_attributes", 0, CU_POINTER_ATTRIBUTE_BUFFER_ID);
  return table;
}

// Without a place for the output. What does not come back takes its process along.
Table<Scene> no_output() {
  Table<Scene> table;
  const auto add = [&](const char *call, const char *way, const std::function<CUresult(Scene &)> &act) {
    table.push_back({call, way, Crossed::kNot, [=](Scene &s, Outputs &) { return act(s); }});
  };
  table.push_back({"cuMemGetInfo", "no_total", Crossed::kNot,
                   [](Scene &, Outputs &o) { return cuMemGetInfo(o.add<std::size_t>("free"), nullptr); }});
  table.push_back({"cuMemGetInfo", "no_free", Crossed::kNot,
                   [](Scene &, Outputs &o) { return cuMemGetInfo(nullptr, o.add<std::size_t>("total")); }});
  table.push_back({"cuMemGetAddressRange", "no_base", Crossed::kNot, [](Scene &s, Outputs &o) {
                     return cuMemGetAddressRange(nullptr, o.add<std::size_t>("psize"), s.block);
                   }});
  add("cuMemGetInfo", "no_output", [](Scene &) { return cuMemGetInfo(nullptr, nullptr); });
  add("cuDeviceTotalMem", "no_output", [](Scene &) { return cuDeviceTotalMem(nullptr, 0); });
  add("cuMemGetAddressRange", "no_output", [](Scene &s) { return cuMemGetAddressRange(nullptr, nullptr, s.block); });
  add("cuPointerGetAttribute", "no_output",
      [](Scene &s) { return cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, s.block); });
  add("cuMemRetainAllocationHandle", "no_output",
      [](Scene &s) { return cuMemRetainAllocationHandle(nullptr, reinterpret_cast<void *>(s.mapped.at())); });
  add("cuMemPoolGetAttribute", "no_output",
      [](Scene &s) { return cuMemPoolGetAttribute(s.pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, nullptr); });
  return table;
}

const Tables<Scene> &tables() {
  static const Tables<Scene> all = {{"memory", memory()}, {"pointers", pointers()}, {"no_output", no_output()}};
  return all;
}

void play(Test &test) {
  ask(test, tables().at(test.name()));
}

}  // namespace

int main(int count, char **arguments) {
  return question::run_tables<Scene>(count, arguments, tables,
                                     {{"memory", play}, {"pointers", play}, {"no_output", play}});
}
