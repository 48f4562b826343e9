#include "cli/usage/device_rows.h"

#include "catch.h"
#include "usage_examples.h"

using namespace ration;
using namespace ration::cli;

namespace {

// One process of the snapshot, with this pid, on a device of which 5 GiB are used.
DeviceRow device_with(int pid, std::uint64_t reserved, DeviceFigures figures) {
  Usage seen = one_process(member(1, pid, {use(kFirstGpu, reserved)}));
  add_figures(seen, {std::move(figures)});
  return seen.devices.at(0);
}

}  // namespace

TEST_CASE("others hold what is used beyond the processes of the snapshot, contexts of these not among it") {
  CHECK(device_with(10, 512 * kMi, figures_of(kFirstGpu)).others == 4 * kGi);
}

TEST_CASE("a process that NVML does not list, or without a figure, counts as in the books") {
  CHECK(device_with(11, 2 * kGi, figures_of(kFirstGpu)).others == 3 * kGi);
  DeviceFigures without = figures_of(kFirstGpu);
  without.holders = {{10, 0}};
  CHECK(device_with(10, 2 * kGi, without).others == 3 * kGi);
}

TEST_CASE("others never hold less than nothing, and are unknown where NVML has no figure of the memory") {
  CHECK(device_with(11, 9 * kGi, figures_of(kFirstGpu)).others == 0);
  DeviceFigures integrated = figures_of(kFirstGpu);
  integrated.memory.reset();
  const DeviceRow row = device_with(10, kGi, integrated);
  CHECK_FALSE(row.others.has_value());
  CHECK_FALSE(row.free.has_value());
  CHECK(row.name == "NVIDIA H200");
}

TEST_CASE("a device that no process uses has a row, with all that is used as others'") {
  Usage seen = one_process(member(1, 10, {use(kFirstGpu, kGi)}));
  DeviceFigures idle = figures_of(kSecondGpu);
  idle.index = 1;
  add_figures(seen, {figures_of(kFirstGpu), idle});
  REQUIRE(seen.devices.size() == 2);
  CHECK(seen.devices[1].uuid == kSecondGpu);
  CHECK(seen.devices[1].gpu == 1);
  CHECK(seen.devices[1].others == 5 * kGi);
  CHECK(seen.devices[1].size == 80 * kGi);
  CHECK(seen.processes[0].gpu == 0);
}

TEST_CASE("tables have a row of others for each device, and only where it is known") {
  Usage seen = one_process(member(1, 10, {use(kFirstGpu, kGi), use(kSecondGpu, kGi)}));
  add_figures(seen, {figures_of(kFirstGpu)});
  add_rows_of_others(seen);
  REQUIRE(seen.processes.size() == 3);
  CHECK(seen.processes[2].is_others);
  CHECK(seen.processes[2].use.uuid == kFirstGpu);
  CHECK(seen.processes[2].use.reserved == 4 * kGi);
}
