// The devices that CUDA will show, without asking CUDA.
#include "runtime/visible_devices.h"

#include <initializer_list>

#include "catch.h"

using namespace ration::runtime;

namespace {

const std::string kFirst = "GPU-11111111-aaaa-bbbb-cccc-111111111111";
const std::string kSecond = "GPU-22222222-aaaa-bbbb-cccc-222222222222";
const std::string kThird = "GPU-22229999-aaaa-bbbb-cccc-333333333333";
const std::string kSlice = "MIG-44444444-aaaa-bbbb-cccc-444444444444";
const std::string kOtherSlice = "MIG-44449999-aaaa-bbbb-cccc-555555555555";
const std::string kOldSlice = "MIG-GPU-66666666-aaaa-bbbb-cccc-666666666666/1/0";
const std::string kOldNeighbour = "MIG-GPU-66666666-aaaa-bbbb-cccc-666666666666/1/01";

std::vector<ListedGpu> alike() {
  return {{kFirst, "A", 0, {}}, {kSecond, "A", 0, {}}, {kThird, "A", 0, {}}};
}
std::vector<ListedGpu> unlike() {
  return {{kFirst, "A", 0, {}}, {kSecond, "B", 0, {}}, {kThird, "A", 0, {}}};
}
std::vector<ListedGpu> partitioned() {
  return {{kFirst, "A", 0, {}},
          {kSecond, "A", 0, {{kSlice, 0}, {kOtherSlice, 0}}},
          {kThird, "A", 0, {{kOldSlice, 0}, {kOldNeighbour, 0}}}};
}

// "UUID ordinal" of each device.
std::vector<std::string> seen(const std::vector<ListedGpu> &gpus, std::initializer_list<std::string> environment) {
  std::vector<const char *> block;
  for (const std::string &entry : environment) {
    block.push_back(entry.c_str());
  }
  block.push_back(nullptr);
  std::vector<std::string> devices;
  for (const VisibleDevice &device : visible_devices(gpus, block.data())) {
    devices.push_back(device.uuid + " " + std::to_string(device.ordinal));
  }
  return devices;
}
std::vector<std::string> chosen(const std::vector<ListedGpu> &gpus, const std::string &list) {
  return seen(gpus, {"A=B", "CUDA_VISIBLE_DEVICES=" + list, "CUDA_VISIBLE_DEVICES=2"});
}

using Seen = std::vector<std::string>;

}  // namespace

TEST_CASE("a process that asks for nothing sees all devices in their order") {
  CHECK(seen(alike(), {"CUDA_VISIBLE_DEVICE=1"}) == Seen{kFirst + " 0", kSecond + " 1", kThird + " 2"});
  CHECK(seen({}, {}).empty());
}

TEST_CASE("numbers and UUIDs count in the order in which they are written") {
  CHECK(chosen(alike(), "2,0") == Seen{kThird + " 0", kFirst + " 1"});
  CHECK(chosen(alike(), kSecond + ", 0 ,\t2") == Seen{kSecond + " 0", kFirst + " 1", kThird + " 2"});
  CHECK(chosen(alike(), "GPU-1,GPU-22222") == Seen{kFirst + " 0", kSecond + " 1"});
}

TEST_CASE("the list ends at the first entry that names no device, several, or one again") {
  CHECK(chosen(alike(), "").empty());
  CHECK(chosen(alike(), "-1").empty());
  CHECK(chosen(alike(), "NoDevFiles").empty());
  for (const char *wrong : {"3", "-1", "", "+2", "0x2", "2a", "99999999999999999999", "GPU-2222", "GPU-", "gpu-2",
                            "22222222", "GPU-9", "MIG-4", "0", "GPU-11111111"}) {
    INFO(wrong);
    CHECK(chosen(alike(), std::string("0,") + wrong + ",1") == Seen{kFirst + " 0"});
  }
  CHECK(chosen(alike(), kSecond + ",1,0") == Seen{kSecond + " 0"});
}

TEST_CASE("numbers of unlike GPUs are unknown, unless CUDA_DEVICE_ORDER asks for the order of the bus") {
  CHECK(seen(unlike(), {}) == Seen{kFirst + " -1", kSecond + " -1", kThird + " -1"});
  CHECK(chosen(unlike(), "1," + kFirst) == Seen{kFirst + " 1"});
  CHECK(chosen(unlike(), "3," + kFirst).empty());
  CHECK(seen(unlike(), {"CUDA_DEVICE_ORDER=FASTEST_FIRST", "CUDA_VISIBLE_DEVICES=2"}).empty());
  CHECK(seen(unlike(), {"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=2,1"}) ==
        Seen{kThird + " 0", kSecond + " 1"});
  CHECK(seen(unlike(), {"CUDA_DEVICE_ORDER=PCI_BUS_ID"}) == Seen{kFirst + " 0", kSecond + " 1", kThird + " 2"});
}

TEST_CASE("GPUs without a model's name are not alike, unless there is only one") {
  CHECK(seen({{kFirst, "", 0, {}}, {kSecond, "", 0, {}}}, {}) == Seen{kFirst + " -1", kSecond + " -1"});
  CHECK(chosen({{kFirst, "", 0, {}}}, "0") == Seen{kFirst + " 0"});
}

TEST_CASE("a MIG device is visible where it is named, by either form or a prefix of its UUID") {
  CHECK(chosen(partitioned(), kSlice) == Seen{kSlice + " 0"});
  CHECK(chosen(partitioned(), "MIG-44449,0") == Seen{kOtherSlice + " 0", kFirst + " 1"});
  CHECK(chosen(partitioned(), kOldSlice) == Seen{kOldSlice + " 0"});
  CHECK(chosen(partitioned(), "MIG-4444").empty());
  CHECK(chosen(partitioned(), kSlice + "," + kSlice + ",0") == Seen{kSlice + " 0"});
}

TEST_CASE("a partitioned GPU takes an ordinal, but which of its slices has it is unknown") {
  CHECK(chosen(partitioned(), "1,0") == Seen{kFirst + " 1"});
  CHECK(chosen(partitioned(), kSecond + ",0") == Seen{kFirst + " 1"});
  CHECK(seen(partitioned(), {}) == Seen{kFirst + " -1"});
}
