// What becomes of a copy, fill or kernel that goes beyond a block: past its end, into a freed block, into addresses
// that are reserved only. What of a wrong free? And does the context survive? Each case runs in a second process, which
// goes on with the next one as long as its context is sound.
#include <algorithm>
#include <future>
#include <map>

#include "tests/gpu/questions/child.h"
#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kBytes = 512;  // of each access; half of it lies before the place's edge

// Where the accesses go, and what keeps that place as it is.
struct Place {
  CUdeviceptr edge = 0;
  Cleanup cleanup;
  std::vector<std::unique_ptr<Handles>> handles;
  std::vector<std::unique_ptr<Range>> ranges;

  CUdeviceptr block(std::size_t bytes) {
    CUdeviceptr one = 0;
    must(cuMemAlloc(&one, bytes));
    cleanup.add([one] { cuMemFree(one); });
    return one;
  }
};

void among_small_blocks(Place &place) {
  for (int i = 0; i < 16; ++i) {
    const CUdeviceptr one = place.block(4 * kKiB);
    if (i == 7) place.edge = one + 4 * kKiB;
  }
}

void after_a_large_block(Place &place) {
  place.edge = place.block(64 * kMiB) + 64 * kMiB;
}

void after_a_block_of_1MiB(Place &place) {
  place.edge = place.block(kMiB) + kMiB;
}

void in_a_freed_block(Place &place) {
  CUdeviceptr one = 0;
  must(cuMemAlloc(&one, 64 * kMiB));
  must(cuMemFree(one));
  place.edge = one + kMiB;
}

void in_a_freed_small_block(Place &place) {
  CUdeviceptr freed = 0;
  place.block(4 * kKiB);
  must(cuMemAlloc(&freed, 4 * kKiB));
  place.block(4 * kKiB);
  must(cuMemFree(freed));
  place.edge = freed + kKiB;
}

void map_granules(Place &place, std::size_t mapped, std::size_t allowed) {
  place.ranges.push_back(std::make_unique<Range>(2 * kGranule));
  Range &range = *place.ranges.back();
  for (std::size_t i = 0; i < mapped; ++i) {
    place.handles.push_back(std::make_unique<Handles>());
    range.map(i * kGranule, *place.handles.back());
  }
  if (allowed > 0) must(allow(range.at(), allowed * kGranule));
  place.edge = range.at(kGranule);
}

void before_an_unmapped_granule(Place &place) {
  map_granules(place, 1, 1);
}
void before_a_granule_without_access(Place &place) {
  map_granules(place, 2, 1);
}
void before_a_mapped_granule(Place &place) {
  map_granules(place, 2, 2);
}
void in_a_reserved_range(Place &place) {
  map_granules(place, 0, 0);
}

void after_a_pooled_block(Place &place) {
  CUdeviceptr one = 0;
  must(cuMemAllocAsync(&one, 64 * kMiB, CU_STREAM_LEGACY));
  must(cuStreamSynchronize(CU_STREAM_LEGACY));
  place.cleanup.add([one] { cuMemFree(one); });
  place.edge = one + 64 * kMiB;
}

void in_no_memory_at_all(Place &place) {
  place.edge = CUdeviceptr{1} << 45;
}

struct Site {
  const char *name;
  void (*make)(Place &);
};
constexpr Site kSites[] = {{"among_small_blocks", among_small_blocks},
                           {"after_a_block_of_1MiB", after_a_block_of_1MiB},
                           {"after_a_large_block", after_a_large_block},
                           {"in_a_freed_block", in_a_freed_block},
                           {"in_a_freed_small_block", in_a_freed_small_block},
                           {"before_an_unmapped_granule", before_an_unmapped_granule},
                           {"before_a_granule_without_access", before_a_granule_without_access},
                           {"before_a_mapped_granule", before_a_mapped_granule},
                           {"in_a_reserved_range", in_a_reserved_range},
                           {"after_a_pooled_block", after_a_pooled_block},
                           {"in_no_memory_at_all", in_no_memory_at_all}};

// What an access may use besides the place.
struct Tools {
  CUdeviceptr good = 0;
  void *pinned = nullptr;
  char pageable[kBytes] = {};
  CUstream stream = nullptr;
  Kernels kernels{};
};

CUresult rectangle(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = 128;
  copy.WidthInBytes = 64;
  copy.Height = kBytes / 128;
  return cuMemcpy2D(&copy);
}

struct Access {
  const char *name;
  CUresult (*act)(Tools &, CUdeviceptr at);
};
const Access kAccesses[] = {
    {"cuMemcpyHtoD", [](Tools &t, CUdeviceptr at) { return cuMemcpyHtoD(at, t.pageable, kBytes); }},
    {"cuMemcpyDtoH", [](Tools &t, CUdeviceptr at) { return cuMemcpyDtoH(t.pageable, at, kBytes); }},
    {"cuMemcpyDtoD_to", [](Tools &t, CUdeviceptr at) { return cuMemcpyDtoD(at, t.good, kBytes); }},
    {"cuMemcpyDtoD_from", [](Tools &t, CUdeviceptr at) { return cuMemcpyDtoD(t.good, at, kBytes); }},
    {"cuMemcpy_to", [](Tools &t, CUdeviceptr at) { return cuMemcpy(at, t.good, kBytes); }},
    {"cuMemcpy_from", [](Tools &t, CUdeviceptr at) { return cuMemcpy(t.good, at, kBytes); }},
    {"cuMemcpyHtoDAsync", [](Tools &t, CUdeviceptr at) { return cuMemcpyHtoDAsync(at, t.pinned, kBytes, t.stream); }},
    {"cuMemcpyDtoHAsync", [](Tools &t, CUdeviceptr at) { return cuMemcpyDtoHAsync(t.pinned, at, kBytes, t.stream); }},
    {"cuMemcpyDtoDAsync_to", [](Tools &t, CUdeviceptr at) { return cuMemcpyDtoDAsync(at, t.good, kBytes, t.stream); }},
    {"cuMemcpy2D_to", [](Tools &t, CUdeviceptr at) { return rectangle(at, t.good); }},
    {"cuMemcpy2D_from", [](Tools &t, CUdeviceptr at) { return rectangle(t.good, at); }},
    {"cuMemsetD8", [](Tools &, CUdeviceptr at) { return cuMemsetD8(at, 1, kBytes); }},
    {"cuMemsetD32Async", [](Tools &t, CUdeviceptr at) { return cuMemsetD32Async(at, 1, kBytes / 4, t.stream); }},
    {"cuMemsetD2D8", [](Tools &, CUdeviceptr at) { return cuMemsetD2D8(at, 128, 1, 64, kBytes / 128); }},
    {"kernel_reads", [](Tools &t, CUdeviceptr at) { return copy(t.kernels, t.good, at, kBytes / 4, t.stream); }},
    {"kernel_writes", [](Tools &t, CUdeviceptr at) { return fill(t.kernels, at, kBytes / 4, 1, t.stream); }},
};

// A case is a site and an access, or one of the frees.
CUresult free_twice(Tools &) {
  CUdeviceptr one = 0;
  must(cuMemAlloc(&one, 4 * kMiB));
  must(cuMemFree(one));
  return cuMemFree(one);
}

CUresult free_inside(Tools &t) {
  return cuMemFree(t.good + 512);
}
CUresult free_async_inside(Tools &t) {
  return cuMemFreeAsync(t.good + 512, t.stream);
}
CUresult free_mapped(Tools &) {
  Place place;
  before_a_mapped_granule(place);
  return cuMemFree(place.edge - kGranule);
}
CUresult free_pinned(Tools &t) {
  return cuMemFree(reinterpret_cast<CUdeviceptr>(t.pinned));
}
CUresult free_pageable(Tools &t) {
  return cuMemFree(reinterpret_cast<CUdeviceptr>(t.pageable));
}
CUresult free_unknown(Tools &) {
  return cuMemFree(CUdeviceptr{1} << 45);
}
CUresult free_host_of_a_block(Tools &t) {
  return cuMemFreeHost(reinterpret_cast<void *>(t.good));
}

struct Free {
  const char *name;
  CUresult (*act)(Tools &);
};
constexpr Free kFrees[] = {{"twice", free_twice},
                           {"inside_a_block", free_inside},
                           {"cuMemFreeAsync_inside_a_block", free_async_inside},
                           {"mapped_memory", free_mapped},
                           {"pinned_memory", free_pinned},
                           {"pageable_memory", free_pageable},
                           {"unknown_address", free_unknown},
                           {"cuMemFreeHost_of_a_block", free_host_of_a_block}};

// Runs cases from `first` on until one leaves the context unsound; tells the parent the two codes of each.
void run_cases(const std::string &site_name, std::size_t first) {
  Tools tools;
  must(cuMemAlloc(&tools.good, 64 * kKiB));
  must(cuMemAllocHost(&tools.pinned, kBytes));
  must(cuStreamCreate(&tools.stream, CU_STREAM_NON_BLOCKING));
  tools.kernels = load_kernels();
  const auto site =
      std::find_if(std::begin(kSites), std::end(kSites), [&](const Site &s) { return s.name == site_name; });
  const std::size_t count = site == std::end(kSites) ? std::size(kFrees) : std::size(kAccesses);
  for (std::size_t i = first; i < count; ++i) {
    CUresult code = CUDA_SUCCESS, later = CUDA_SUCCESS;
    {
      Place place;
      if (site != std::end(kSites)) site->make(place);
      code = site == std::end(kSites) ? kFrees[i].act(tools) : kAccesses[i].act(tools, place.edge - kBytes / 2);
      later = cuCtxSynchronize();
    }
    if (later == CUDA_SUCCESS) later = cuMemsetD8(tools.good, 0, 16);
    if (later == CUDA_SUCCESS) later = cuCtxSynchronize();
    send(kParent, std::to_string(i) + " " + std::to_string(code) + " " + std::to_string(later));
    if (later != CUDA_SUCCESS) _exit(0);  // without the driver's good-bye to a broken context
  }
}

// Whether a fill that overruns a small block by a few bytes changes the block after it.
void look_at_neighbours() {
  Place place;
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(place.block(4 * kKiB));
  std::sort(blocks.begin(), blocks.end());
  unsigned char byte = 0;
  must(cuMemsetD8(blocks[8], 1, 4 * kKiB));
  const CUresult code = cuMemsetD8(blocks[7], 2, blocks[8] - blocks[7] + 1);
  must(cuMemcpyDtoH(&byte, blocks[8], 1));
  send(kParent, std::to_string(blocks[8] - blocks[7]) + " " + std::to_string(code) + " " + std::to_string(byte == 2));
}

void neighbours(Test &test) {
  const Child child({"neighbours", "0"});
  const std::string text = receive(child.socket()).text;
  long distance = 0;
  int code = 0, reached = 0;
  if (std::sscanf(text.c_str(), "%ld %d %d", &distance, &code, &reached) != 3) skip(text);
  test.number("bytes_from_block_to_block", distance);
  test.number("cuMemsetD8_over_the_end_code", code);
  test.yes("reached_the_neighbour", reached != 0);
  test.note("Two neighbouring blocks of 4 KiB, and a fill of the first that is too long.");
}

struct Outcome {
  int code = -1, later = 0, signal = 0;
};

std::vector<Outcome> outcomes(const std::string &site, std::size_t count) {
  std::vector<Outcome> all(count);
  for (std::size_t next = 0; next < count;) {
    Child child({site, std::to_string(next)});
    bool told = false;
    while (next < count) {
      const std::string text = receive(child.socket(), 12'000).text;
      std::size_t index = 0;
      Outcome outcome;
      if (std::sscanf(text.c_str(), "%zu %d %d", &index, &outcome.code, &outcome.later) != 3) {
        if (!text.empty() && !told) skip("the second process " + text);  // before its first case
        break;
      }
      told = true;
      all[index] = outcome;
      next = index + 1;
      if (outcome.later != 0) break;
    }
    const bool broken = next > 0 && all[next - 1].later != 0;
    const int signal = child.end(!broken && next < count);
    if (next < count && !broken) all[next++].signal = signal;  // the child did not survive this case
  }
  return all;
}

// All sites run at the same time, from the first question on.
std::map<std::string, std::shared_future<std::vector<Outcome>>> &running() {
  static std::map<std::string, std::shared_future<std::vector<Outcome>>> all;
  if (all.empty()) {
    for (const Site &site : kSites) {
      all[site.name] = std::async(std::launch::async, outcomes, site.name, std::size(kAccesses)).share();
    }
  }
  return all;
}

template <class Named>
void report(Test &test, const std::vector<Outcome> &all, const Named &names) {
  std::string refused, broken;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = names[i].name;
    test.number(name + "_code", all[i].code);
    if (all[i].later != 0) test.number(name + "_context_code_afterwards", all[i].later);
    if (all[i].signal != 0) test.number(name + "_ended_by_signal", all[i].signal);
    if (all[i].code != 0) refused += " " + name;
    if (all[i].later != 0) broken += " " + name;
  }
  test.note("Refused:" + (refused.empty() ? " none" : refused) +
            ". The context was lost by:" + (broken.empty() ? " none" : broken) + ".");
}

template <int kSite>
void accesses(Test &test) {
  report(test, running()[kSites[kSite].name].get(), kAccesses);
}

void frees(Test &test) {
  report(test, outcomes("frees", std::size(kFrees)), kFrees);
}

}  // namespace

int main(int count, char **arguments) {
  if (count > 2) {
    return question::run_child([&] {
      const std::string part = arguments[1];
      part == "neighbours" ? look_at_neighbours() : run_cases(part, std::stoul(arguments[2]));
    });
  }
  using question::Driver;
  return question::run({{"frees", frees},
                        {"neighbours", neighbours},
                        {kSites[0].name, accesses<0>},
                        {kSites[1].name, accesses<1>},
                        {kSites[2].name, accesses<2>},
                        {kSites[3].name, accesses<3>},
                        {kSites[4].name, accesses<4>},
                        {kSites[5].name, accesses<5>},
                        {kSites[6].name, accesses<6>},
                        {kSites[7].name, accesses<7>},
                        {kSites[8].name, accesses<8>},
                        {kSites[9].name, accesses<9>},
                        {kSites[10].name, accesses<10>}},
                       Driver::kUntouched);
}
