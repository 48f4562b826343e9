// What do the calls that make arrays and pinned memory, and the exports of CUDA 2.0 that allocate, do to their outputs
// where they are refused? As outputs_allocating.
#include <sys/mman.h>

#include <limits>

#include "tests/gpu/questions/question.h"
#include "tests/gpu/questions/tables.h"

namespace {

using namespace question;

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kHuge = std::size_t{1} << 50;  // more than any device, host or address space has

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

Table<Stage> arrays() {
  Table<Stage> table;
  using Flat = CUDA_ARRAY_DESCRIPTOR;
  using Deep = CUDA_ARRAY3D_DESCRIPTOR;
  const auto flat = [&](const char *way, Crossed crossed, const Flat &wanted) {
    table.push_back({"cuArrayCreate", way, crossed, [=](Stage &s, Outputs &o) {
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
                     [=](Stage &, Outputs &o) { return cuArray3DCreate(o.add<CUarray>("handle"), &wanted); }});
  };
  const auto levels = [&](const char *way, Crossed crossed, unsigned count, const Deep &wanted) {
    table.push_back({"cuMipmappedArrayCreate", way, crossed, [=](Stage &, Outputs &o) {
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

Table<Stage> host() {
  Table<Stage> table;
  struct Size {
    const char *way;
    Crossed crossed;
    std::size_t bytes;
  };
  for (const Size &size : {Size{"valid", Crossed::kCalls, kMiB}, Size{"zero", Crossed::kCalls, 0},
                           Size{"huge", Crossed::kCalls, kHuge}, Size{"largest", Crossed::kNot, kMost}}) {
    const std::size_t bytes = size.bytes;
    table.push_back({"cuMemAllocHost", size.way, size.crossed,
                     [=](Stage &, Outputs &o) { return cuMemAllocHost(o.add<void *>("pp"), bytes); }});
    table.push_back({"cuMemHostAlloc", size.way, size.crossed, [=](Stage &, Outputs &o) {
                       return cuMemHostAlloc(o.add<void *>("pp"), bytes, CU_MEMHOSTALLOC_PORTABLE);
                     }});
  }
  const auto bad_flags = [&](const char *way, std::size_t bytes) {
    table.push_back({"cuMemHostAlloc", way, Crossed::kNot,
                     [=](Stage &, Outputs &o) { return cuMemHostAlloc(o.add<void *>("pp"), bytes, 0x8000); }});
  };
  bad_flags("bad_flags", kMiB);
  bad_flags("huge_and_bad_flags", kHuge);
  const auto enter = [&](const char *way, Crossed crossed, std::size_t bytes, unsigned flags) {
    table.push_back({"cuMemHostRegister", way, crossed, [=](Stage &, Outputs &) {
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
                   [](Stage &, Outputs &) { return cuMemHostRegister(nullptr, kMiB, 0); }});
  return table;
}

// The exports of CUDA 2.0, whose addresses have 32 bits. No current header has them under their own name.
Table<Stage> legacy() {
  Table<Stage> table;
  const auto add = [&](const std::string &way, Crossed crossed, unsigned bytes) {
    table.push_back({"cuMemAlloc_of_32_bits", way, crossed, [=](Stage &, Outputs &o) {
                       using Call = CUresult (*)(unsigned *, unsigned);
                       return reinterpret_cast<Call>(export_of("cuMemAlloc"))(o.add<unsigned>("dptr"), bytes);
                     }});
    table.push_back({"cuMemAllocHost_of_32_bits", way, crossed, [=](Stage &, Outputs &o) {
                       using Call = CUresult (*)(void **, unsigned);
                       return reinterpret_cast<Call>(export_of("cuMemAllocHost"))(o.add<void *>("pp"), bytes);
                     }});
  };
  add("valid", Crossed::kCalls, kMiB);
  add("zero", Crossed::kNot, 0);
  const auto rows = [&](const char *way, unsigned width, unsigned height, unsigned element) {
    table.push_back({"cuMemAllocPitch_of_32_bits", way, Crossed::kNot, [=](Stage &, Outputs &o) {
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
Table<Stage> no_output() {
  Table<Stage> table;
  const auto add = [&](const char *call, const std::function<CUresult(Stage &)> &act) {
    table.push_back({call, "no_output", Crossed::kNot, [=](Stage &s, Outputs &) { return act(s); }});
  };
  const auto flat = shape<CUDA_ARRAY_DESCRIPTOR>(64, 64, CU_AD_FORMAT_FLOAT, 1);
  const auto deep = shape<CUDA_ARRAY3D_DESCRIPTOR>(64, 64, CU_AD_FORMAT_FLOAT, 1);
  add("cuArrayCreate", [=](Stage &) { return cuArrayCreate(nullptr, &flat); });
  add("cuArray3DCreate", [=](Stage &) { return cuArray3DCreate(nullptr, &deep); });
  add("cuMipmappedArrayCreate", [=](Stage &) { return cuMipmappedArrayCreate(nullptr, &deep, 3); });
  add("cuMemAllocHost", [](Stage &) { return cuMemAllocHost(nullptr, kMiB); });
  add("cuMemHostAlloc", [](Stage &) { return cuMemHostAlloc(nullptr, kMiB, 0); });
  const auto no_input = [&](const char *call, const std::function<CUresult(Outputs &)> &act) {
    table.push_back({call, "no_description", Crossed::kNot, [=](Stage &, Outputs &o) { return act(o); }});
  };
  no_input("cuArrayCreate", [](Outputs &o) { return cuArrayCreate(o.add<CUarray>("handle"), nullptr); });
  no_input("cuArray3DCreate", [](Outputs &o) { return cuArray3DCreate(o.add<CUarray>("handle"), nullptr); });
  no_input("cuMipmappedArrayCreate",
           [](Outputs &o) { return cuMipmappedArrayCreate(o.add<CUmipmappedArray>("handle"), nullptr, 3); });
  return table;
}

const Tables<Stage> &tables() {
  static const Tables<Stage> all = {
      {"arrays", arrays()}, {"host", host()}, {"legacy", legacy()}, {"no_output", no_output()}};
  return all;
}

void play(Test &test) {
  ask(test, tables().at(test.name()));
}

}  // namespace

int main(int count, char **arguments) {
  return question::run_tables<Stage>(count, arguments, tables,
                                     {{"arrays", play}, {"host", play}, {"legacy", play}, {"no_output", play}});
}
