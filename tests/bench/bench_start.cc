// Cost of the preload for a process without CUDA: start and end of /bin/true, in turns; medians.
#include <algorithm>
#include <cstdio>
#include <exception>

#include "paired.h"

using namespace ration::bench;

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

int main(int count, char **arguments) {
  try {
    const Arguments read = read_arguments(count, arguments, 1500);
    const std::vector<std::string> command{"/bin/true"};
    constexpr double kMicroseconds = 1e6;
    constexpr int kWarmUp = 20;
    std::vector<double> without, with;
    pin();
    for (int i = -kWarmUp; i < read.rounds; ++i) {
      const double bare = run_child(command, Under::kNothing);
      const double preloaded = run_child(command, Under::kRation);
      if (i < 0) continue;
      without.push_back(bare * kMicroseconds);
      with.push_back(preloaded * kMicroseconds);
    }
    report("start", {{"bin_true", "us", median(without), median(with)}}, read.json);
    return 0;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "bench_start: %s\n", failure.what());
    return 1;
  }
}
