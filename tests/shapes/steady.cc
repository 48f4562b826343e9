// Random sizes with a constant number of blocks: a shape without a pattern that a placement could exploit.
#include "shapes/random.h"
#include "shapes/recorder.h"
#include "shapes/shapes.h"

namespace ration::shapes {
namespace {

constexpr std::uint64_t kSmallest = 256;
constexpr unsigned kOctaves = 18;  // to 64 MiB
constexpr std::uint64_t kExchanges = 200'000;

pool::replay::Trace steady(std::uint64_t seed, std::uint64_t blocks, double length) {
  Random random(seed);
  Recorder recorder;
  std::vector<Recorder::Id> live;
  while (live.size() < blocks) live.push_back(recorder.allocate(random.log_uniform(kSmallest, kOctaves)));
  for (std::uint64_t left = repeated(kExchanges, length); left > 0; --left) {
    Recorder::Id &block = live[random.between(0, blocks - 1)];
    recorder.free(block);
    block = recorder.allocate(random.log_uniform(kSmallest, kOctaves));
  }
  return recorder.take();
}

}  // namespace

pool::replay::Trace steady1k(std::uint64_t seed, double length) {
  return steady(seed, 1'000, length);
}

pool::replay::Trace steady10k(std::uint64_t seed, double length) {
  return steady(seed, 10'000, length);
}

}  // namespace ration::shapes
