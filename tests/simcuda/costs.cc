#include "tests/simcuda/costs.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "tests/simcuda/entry.h"
#include "tests/simcuda/settings.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;

// All figures: NVIDIA H100 80GB HBM3, driver 580.159.04, 2026-11-26; medians in microseconds.
// tests/gpu/results/H100-2026-11-26-first-and-stitched.json, `questions.costs.plain`, `.handles`, `.preallocation`.
// Below 1 MiB blocks share pages of the driver's: as many live at once.
constexpr SizeCost kAlloc[] = {{64 * kKiB, 1.2}, {kMiB, 30},        {2 * kMiB, 29.6},    {32 * kMiB, 35.5},
                               {kGiB, 140.5},    {8 * kGiB, 961.9}, {60 * kGiB, 175'000}};
constexpr SizeCost kFree[] = {{64 * kKiB, 1.1}, {kMiB, 26.7},       {2 * kMiB, 26.3},   {32 * kMiB, 41.5},
                              {kGiB, 515.7},    {8 * kGiB, 4317.2}, {60 * kGiB, 25'857}};
constexpr SizeCost kCreate[] = {{2 * kMiB, 10.8},   {32 * kMiB, 12.8},  {128 * kMiB, 14.3},
                                {256 * kMiB, 15.7}, {512 * kMiB, 19.2}, {kGiB, 35.6}};
constexpr SizeCost kMap[] = {{256 * kMiB, 0.8}, {512 * kMiB, 1.1}, {kGiB, 1.9}};
constexpr SizeCost kAccess[] = {{2 * kMiB, 24.9},   {16 * kMiB, 25.4},  {32 * kMiB, 41.1},
                                {256 * kMiB, 42.8}, {512 * kMiB, 55.9}, {kGiB, 83.3}};
constexpr SizeCost kUnmap[] = {
    {16 * kMiB, 17.1}, {32 * kMiB, 25.1}, {256 * kMiB, 24.6}, {512 * kMiB, 28.9}, {kGiB, 43.9}};
constexpr SizeCost kRelease[] = {{2 * kMiB, 12.1}, {16 * kMiB, 18.3}, {64 * kMiB, 40.2}, {kGiB, 453.2}};
constexpr SizeCost kReserve[] = {{16 * kMiB, 0.8}, {32 * kMiB, 3.1}, {512 * kMiB, 3.1}, {kGiB, 7.5}};
constexpr SizeCost kAddressFree[] = {{16 * kMiB, 0.7}, {32 * kMiB, 2.5}, {512 * kMiB, 3.6}, {kGiB, 6.4}};
// ...-graphs-and-exports.json, `questions.stream_costs.stream_ordered`: what a pool takes from the device, and what a
// wait lets it give back. `questions.graphs.costs`: the same of graphs' memory, of 64 MiB alone.
constexpr SizeCost kPoolGrows[] = {{32 * kMiB, 70}, {kGiB, 1541}};
constexpr SizeCost kPoolShrinks[] = {{32 * kMiB, 80}, {kGiB, 2158}};
constexpr SizeCost kGraphsGrow[] = {{64 * kMiB, 306}};
constexpr SizeCost kGraphsShrink[] = {{64 * kMiB, 98}};
// `questions.waits.*`: medians of the idle figures of its four kinds of stream and context. Pinned memory was measured
// at 4 MiB alone; less is taken to cost in proportion.
constexpr SizeCost kPin[] = {{0, 0}, {4 * kMiB, 1480}};
constexpr SizeCost kUnpin[] = {{0, 0}, {4 * kMiB, 406}};
constexpr SizeCost kRegister[] = {{0, 0}, {4 * kMiB, 1411}};
constexpr SizeCost kUnregister[] = {{0, 0}, {4 * kMiB, 136}};

struct Row {
  std::string_view name;
  CallCost cost;
};
constexpr Row kMeasured[] = {
    {"cuMemAlloc_v2", {0, kAlloc}},
    {"cuMemAllocPitch_v2", {0, kAlloc}},
    {"cuMemFree_v2", {0.2, kFree}},
    {"cuMemAllocManaged", {30}},
    {"cuMemCreate", {0, kCreate}},
    {"cuMemMap", {0, kMap}},
    {"cuMemSetAccess", {0.6, kAccess}},  // of mappings that change
    {"cuMemUnmap", {0.4, kUnmap}},       // of mappings that had access
    {"cuMemRelease", {0, kRelease}},     // of memory that goes
    {"cuMemAddressReserve", {0, kReserve}},
    {"cuMemAddressFree", {0, kAddressFree}},
    {"cuMemAllocAsync", {0.7, kPoolGrows}},
    {"cuMemAllocFromPoolAsync", {0.7, kPoolGrows}},
    {"cuMemFreeAsync", {0.8}},
    {"cuMemPoolCreate", {113}},
    {"cuMemPoolDestroy", {1, kPoolShrinks}},
    {"cuMemPoolTrimTo", {0.7, kPoolShrinks}},
    {"cuStreamSynchronize", {0.5, kPoolShrinks}},
    {"cuEventSynchronize", {0.5, kPoolShrinks}},
    {"cuCtxSynchronize", {0.7, kPoolShrinks}},
    {"cuMemAllocHost_v2", {0, kPin}},
    {"cuMemHostAlloc", {0, kPin}},
    {"cuMemFreeHost", {0, kUnpin}},
    {"cuMemHostRegister_v2", {0, kRegister}},
    {"cuMemHostUnregister", {0, kUnregister}},
    {"cuArrayCreate_v2", {297}},
    {"cuArray3DCreate_v2", {297}},
    {"cuArrayDestroy", {44}},
    {"cuStreamCreate", {11}},
    {"cuStreamDestroy_v2", {6}},
    {"cuStreamQuery", {0.3}},
    {"cuEventCreate", {1.3}},
    {"cuEventDestroy_v2", {0.8}},
    {"cuEventRecord", {0.36}},
    {"cuEventQuery", {0.3}},
    {"cuCtxRecordEvent", {0.33}},
    {"cuMemGetInfo_v2", {6.6}},
    {"cuMemcpyHtoDAsync_v2", {14}},
    {"cuGraphInstantiateWithFlags", {14}},
    {"cuGraphLaunch", {1.1, kGraphsGrow}},
    {"cuGraphUpload", {1.1, kGraphsGrow}},
    {"cuDeviceGraphMemTrim", {0.24, kGraphsShrink}},
    {"cuMemExportToShareableHandle", {697}},  // `questions.sharing.*`, of 64 MiB
    {"cuMemImportFromShareableHandle", {61}},
    {"cuIpcGetMemHandle", {15}},
    {"cuIpcOpenMemHandle_v2", {114}},
    {"cuIpcCloseMemHandle", {80}},
};

// A per-thread flavour costs what the plain call does.
std::string_view plain(std::string_view symbol) {
  for (const std::string_view flavour : {"_ptds", "_ptsz"}) {
    if (symbol.ends_with(flavour)) return symbol.substr(0, symbol.size() - flavour.size());
  }
  return symbol;
}

const CallCost *find(const Settings &all, std::string_view symbol) {
  for (const NamedCost &named : all.costs) {
    if (named.symbol == symbol) return new CallCost{.call_us = named.microseconds, .each = true};
  }
  if (!all.measured_costs) return nullptr;
  const auto *const found = std::find_if(std::begin(kMeasured), std::end(kMeasured),
                                         [&](const Row &row) { return row.name == plain(symbol); });
  return found == std::end(kMeasured) ? nullptr : &found->cost;
}

}  // namespace

double CallCost::of(std::uint64_t bytes) const {
  const auto above =
      std::find_if(by_bytes.begin(), by_bytes.end(), [&](const SizeCost &at) { return at.bytes >= bytes; });
  if (by_bytes.empty()) return 0;
  if (above == by_bytes.begin()) return above->us;
  const SizeCost &low = *std::prev(above);
  if (above == by_bytes.end()) return low.us;
  return low.us +
         (above->us - low.us) * static_cast<double>(bytes - low.bytes) / static_cast<double>(above->bytes - low.bytes);
}

const CallCost *cost_of(unsigned index) {
  static const auto *const table = [] {  // never destroyed: programs call the driver from exit handlers
    auto *const all = new std::vector<const CallCost *>;
    for (unsigned i = 0; i < kSymbolCount; ++i) all->push_back(find(settings(), kSymbols[i]));
    return all;
  }();
  return (*table)[index];
}

}  // namespace simcuda
