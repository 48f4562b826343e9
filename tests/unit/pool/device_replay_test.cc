#include "logs/replay/device_replay.h"

#include <algorithm>
#include <vector>

#include "catch.h"

using namespace ration::pool::replay;

namespace {

using Kind = DeviceStep::Kind;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Steps are numbered as records from 1.
class Device {
 public:
  std::uint32_t take(std::uint64_t bytes, std::uint32_t pool = 0) {
    trace_.pools = std::max(trace_.pools, pool + 1);
    live_.push_back(bytes);
    add({Kind::kAllocate, pool, trace_.ids, bytes, 0}, bytes);
    return trace_.ids++;
  }
  void free(std::uint32_t id, std::uint32_t pool = 0) { add({Kind::kFree, pool, id, live_[id], 0}, 0 - live_[id]); }
  void other(std::uint64_t bytes) {
    const std::uint64_t before = other_;
    other_ = bytes;
    add({Kind::kOther, 0, 0, bytes, 0}, bytes - before);
  }
  const DeviceTrace &trace() const { return trace_; }

 private:
  void add(DeviceStep step, std::uint64_t more) {
    used_ += more;
    step.record = trace_.steps.size() + 1;
    trace_.steps.push_back(step);
    trace_.peak_bytes = std::max(trace_.peak_bytes, used_);
    trace_.peak_other_bytes = std::max(trace_.peak_other_bytes, other_);
  }
  DeviceTrace trace_;
  std::vector<std::uint64_t> live_;
  std::uint64_t used_ = 0, other_ = 0;
};

}  // namespace

TEST_CASE("blocks in whole granules need their sum, and stop at the one beyond it") {
  Device device;
  for (int i = 0; i < 4; ++i) device.take(32 * kMiB);
  CHECK(find_device_minimum(device.trace(), Backing::vmm) == 128 * kMiB);
  const auto stop = replay_device(device.trace(), 126 * kMiB, Backing::vmm);
  REQUIRE(stop);
  CHECK(stop->record == 4);
  CHECK(stop->bytes == 32 * kMiB);
  CHECK(stop->used == 96 * kMiB);
}

TEST_CASE("other memory counts beside the pool, which gives it what holds no block") {
  Device device;
  const std::uint32_t block = device.take(100 * kMiB);
  device.other(50 * kMiB);
  device.free(block);
  device.other(150 * kMiB);
  device.take(20 * kMiB);
  CHECK(find_device_minimum(device.trace(), Backing::vmm) == 170 * kMiB);
  const auto stop = replay_device(device.trace(), 148 * kMiB, Backing::vmm);
  REQUIRE(stop);
  CHECK(stop->record == 2);
}

TEST_CASE("a preallocated slab leaves nothing to other memory, whatever the limit") {
  Device device;
  device.take(100 * kMiB);
  device.other(50 * kMiB);
  CHECK_FALSE(find_device_minimum(device.trace(), Backing::slab));
}

TEST_CASE("a second pool gets what the first one does not use") {
  Device device;
  const std::uint32_t block = device.take(64 * kMiB);
  device.take(40 * kMiB);
  device.free(block);
  device.take(60 * kMiB, 1);
  CHECK(find_device_minimum(device.trace(), Backing::vmm) == 104 * kMiB + kSpareOfPools);
  CHECK_FALSE(replay_device(device.trace(), 104 * kMiB, Backing::vmm));
}

TEST_CASE("what is left beside whole granules is served by the driver") {
  Device device;
  device.take(64 * kMiB);
  device.take(kMiB);
  CHECK_FALSE(replay_device(device.trace(), 65 * kMiB, Backing::vmm));
  CHECK(replay_device(device.trace(), 65 * kMiB - 1, Backing::vmm));
}

TEST_CASE("a replay in mode direct stops where the requested bytes exceed the limit") {
  Device device;
  device.take(5120);
  device.other(1024);
  const std::uint32_t block = device.take(2048);
  device.free(block);
  CHECK(find_direct_minimum(device.trace()) == 8192);
  CHECK_FALSE(replay_direct(device.trace(), 8192));
  const auto stop = replay_direct(device.trace(), 8191);
  REQUIRE(stop);
  CHECK(stop->record == 3);
  CHECK(stop->bytes == 2048);
  CHECK(stop->used == 6144);
}

TEST_CASE("in mode direct a block is charged whole units, but for one that just fits") {
  Device device;
  device.take(1000);
  device.take(1000);
  CHECK(find_direct_minimum(device.trace()) == 2024);
  device.take(100);
  CHECK(find_direct_minimum(device.trace()) == 2560);
}

TEST_CASE("memory is not yet clean where a real pool grows instead, so that a block may lie elsewhere") {
  Device device;
  for (int i = 0; i < 8; ++i) device.take(3 * kMiB);
  for (std::uint32_t i = 0; i < 8; i += 2) device.free(i);
  device.take(kMiB);
  device.take(11 * kMiB);
  const auto minimum = find_device_minimum(device.trace(), Backing::vmm);
  REQUIRE(minimum);
  CHECK(*minimum >= 24 * kMiB);
  CHECK_FALSE(replay_device(device.trace(), *minimum, Backing::vmm));
}

TEST_CASE("a device on which nothing is requested needs nothing") {
  CHECK(find_device_minimum(DeviceTrace{}, Backing::vmm) == 0);
}
