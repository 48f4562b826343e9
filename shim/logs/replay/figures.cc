#include "logs/replay/figures.h"

namespace ration::pool::replay {
namespace {

std::uint64_t percentile(const std::vector<std::uint64_t> &sorted, std::size_t percent) {
  return sorted.empty() ? 0 : sorted[(sorted.size() - 1) * percent / 100];
}

}  // namespace

void add_figures(const Measurement &measured, nlohmann::ordered_json &result) {
  result["alloc_ns_median"] = percentile(measured.alloc_ns, 50);
  result["alloc_ns_p99"] = percentile(measured.alloc_ns, 99);
  result["free_ns_median"] = percentile(measured.free_ns, 50);
  result["free_ns_p99"] = percentile(measured.free_ns, 99);
  result["pair_ns_mean"] = measured.pair_ns_mean;
  result["clock_ns"] = measured.clock_ns;
  result["metadata_bytes_per_block"] = measured.metadata_bytes_per_block;
}

}  // namespace ration::pool::replay
