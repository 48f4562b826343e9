#include "cli/usage/device_rows.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/saturating.h"
#include "cli/run/device_neighbours.h"

namespace ration::cli {

namespace {

DeviceRow &device_of(std::vector<DeviceRow> &devices, const std::string &uuid) {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&uuid](const DeviceRow &each) { return each.uuid == uuid; });
  if (found != devices.end()) {
    return *found;
  }
  DeviceRow row;
  row.uuid = uuid;
  return devices.emplace_back(std::move(row));
}

// Sorted by index; then those without one, by UUID.
template <class Row>
bool comes_before(const Row &a, const Row &b) {
  return std::make_tuple(a.gpu == kNoIndex, a.gpu, std::string_view(a.uuid)) <
         std::make_tuple(b.gpu == kNoIndex, b.gpu, std::string_view(b.uuid));
}

// Passes the processes of the snapshot to held_outside() in the form that it needs.
std::uint64_t held_by_others(const DeviceFigures &figures, const std::vector<ProcessRow> &processes) {
  std::vector<std::pair<int, std::uint64_t>> known;
  for (const ProcessRow &row : processes) {
    if (row.use.uuid == figures.uuid) {
      known.emplace_back(row.shown_pid(), row.use.reserved);
    }
  }
  return held_outside(figures, known);
}

}  // namespace

std::optional<std::uint64_t> DeviceRow::overhead() const {
  return free && others ? std::optional(minus_or_zero(size, *free + *others + reserved)) : std::nullopt;
}

void make_device_rows(Usage &usage) {
  usage.devices.clear();
  for (const GroupRow &row : usage.groups) {
    if (!row.uuid.empty()) {
      DeviceRow &device = device_of(usage.devices, row.uuid);
      device.size = std::max(device.size, row.device_size);
    }
  }
  for (const ProcessRow &row : usage.processes) {
    DeviceRow &device = device_of(usage.devices, row.use.uuid);
    device.reserved += row.use.reserved;
    device.used += row.use.used;
    device.processes += row.is_stand_in ? 0 : 1;
  }
  std::sort(usage.devices.begin(), usage.devices.end(), comes_before<DeviceRow>);
}

void number_devices(Usage &usage, const std::map<std::string, int> &indexes) {
  const auto index_of = [&indexes](const std::string &uuid) {
    const auto found = indexes.find(uuid);
    return found == indexes.end() ? kNoIndex : found->second;
  };
  for (ProcessRow &row : usage.processes) {
    row.gpu = index_of(row.use.uuid);
  }
  for (GroupRow &row : usage.groups) {
    row.gpu = index_of(row.uuid);
  }
  for (DeviceRow &row : usage.devices) {
    row.gpu = index_of(row.uuid);
  }
  std::sort(usage.devices.begin(), usage.devices.end(), comes_before<DeviceRow>);
  for (auto begin = usage.groups.begin(), end = begin; begin != usage.groups.end(); begin = end) {
    end = std::find_if(begin, usage.groups.end(), [&](const GroupRow &row) { return !row.is_of_group(*begin); });
    std::stable_sort(begin, end, comes_before<GroupRow>);
  }
}

void add_figures(Usage &usage, const std::vector<DeviceFigures> &figures) {
  std::map<std::string, int> indexes;
  for (const DeviceFigures &each : figures) {
    DeviceRow &device = device_of(usage.devices, each.uuid);
    device.name = each.name;
    device.utilisation = each.utilisation;
    device.temperature = each.temperature;
    if (each.memory) {
      device.size = device.size != 0 ? device.size : each.memory->total;
      device.free = each.memory->free;
      device.others = held_by_others(each, usage.processes);
    }
    if (each.index) {
      indexes[each.uuid] = *each.index;
    }
  }
  number_devices(usage, indexes);
}

void add_rows_of_others(Usage &usage) {
  for (const DeviceRow &device : usage.devices) {
    if (device.others) {
      ProcessRow row;
      row.is_others = true;
      row.program = "others";
      row.group_label = "-";
      row.gpu = device.gpu;
      row.use.uuid = device.uuid;
      row.use.reserved = *device.others;
      usage.processes.push_back(std::move(row));
    }
  }
}

}  // namespace ration::cli
