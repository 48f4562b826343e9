#include "runtime/visible_devices.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace ration::runtime {
namespace {

// The value of the first entry with this name, as getenv finds it.
std::optional<std::string_view> value_of(std::string_view variable, const char *const *environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (entry.substr(0, variable.size()) == variable && entry.substr(variable.size(), 1) == "=") {
      return entry.substr(variable.size() + 1);
    }
  }
  return std::nullopt;
}

bool is_bus_order(const std::vector<ListedGpu> &gpus, const char *const *environment) {
  return value_of("CUDA_DEVICE_ORDER", environment) == "PCI_BUS_ID" ||
         std::all_of(gpus.begin(), gpus.end(),
                     [&](const ListedGpu &gpu) { return !gpu.model.empty() && gpu.model == gpus.front().model; });
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// Reads the list in CUDA_VISIBLE_DEVICES entry by entry.
class List {
 public:
  List(const std::vector<ListedGpu> &gpus, bool numbers_known) : gpus_(gpus), numbers_known_(numbers_known) {}

  // False: the entry names no device, or a device that was named before. From that entry on CUDA ignores the list (CUDA
  // programming guide, "CUDA environment variables").
  bool take(std::string_view entry) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
    if (error == std::errc{} && end == entry.data() + entry.size()) {
      return number < gpus_.size() && (numbers_known_ ? take_gpu(gpus_[number]) : take_unknown());
    }
    if (starts_with(entry, "GPU-")) {
      const ListedGpu *gpu = the_only_one([&](const ListedGpu &each) { return starts_with(each.uuid, entry); });
      return gpu != nullptr && take_gpu(*gpu);
    }
    const ListedSlice *slice = starts_with(entry, "MIG-") ? slice_called(entry) : nullptr;
    return slice != nullptr && take_device(slice->uuid, slice->total);
  }

  std::vector<VisibleDevice> taken() && { return std::move(taken_); }

 private:
  template <class Holds>
  const ListedGpu *the_only_one(const Holds &holds) const {
    const auto first = std::find_if(gpus_.begin(), gpus_.end(), holds);
    return first != gpus_.end() && std::find_if(first + 1, gpus_.end(), holds) == gpus_.end() ? &*first : nullptr;
  }

  // Finds a slice by its full name ("MIG-<uuid>", or "MIG-GPU-<uuid>/<gi>/<ci>" of older drivers) or an unambiguous
  // prefix.
  const ListedSlice *slice_called(std::string_view entry) const {
    const ListedSlice *found = nullptr;
    int fitting = 0;
    for (const ListedGpu &gpu : gpus_) {
      for (const ListedSlice &slice : gpu.slices) {
        if (slice.uuid == entry) {
          return &slice;
        }
        if (starts_with(slice.uuid, entry)) {
          found = &slice;
          ++fitting;
        }
      }
    }
    return fitting == 1 ? found : nullptr;
  }

  bool take_unknown() {
    ++places_;
    return true;
  }
  // CUDA shows one slice of a partitioned GPU, but it is not known which.
  bool take_gpu(const ListedGpu &gpu) { return gpu.slices.empty() ? take_device(gpu.uuid, gpu.total) : take_unknown(); }
  bool take_device(const std::string &uuid, std::uint64_t total) {
    if (std::any_of(taken_.begin(), taken_.end(), [&](const VisibleDevice &device) { return device.uuid == uuid; })) {
      return false;
    }
    taken_.push_back({uuid, total, places_++});
    return true;
  }

  const std::vector<ListedGpu> &gpus_;
  const bool numbers_known_;
  std::vector<VisibleDevice> taken_;
  int places_ = 0;
};

// If some GPUs are partitioned, CUDA chooses between them and whole ones by an unknown rule.
std::vector<VisibleDevice> all_of(const std::vector<ListedGpu> &gpus, bool numbers_known) {
  numbers_known =
      numbers_known && std::all_of(gpus.begin(), gpus.end(), [](const ListedGpu &gpu) { return gpu.slices.empty(); });
  std::vector<VisibleDevice> devices;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].slices.empty()) {
      devices.push_back({gpus[i].uuid, gpus[i].total, numbers_known ? static_cast<int>(i) : -1});
    }
  }
  return devices;
}

}  // namespace

std::vector<VisibleDevice> visible_devices(const std::vector<ListedGpu> &gpus, const char *const *environment) {
  const bool numbers_known = gpus.size() == 1 || is_bus_order(gpus, environment);
  const std::optional<std::string_view> asked = value_of("CUDA_VISIBLE_DEVICES", environment);
  if (!asked) {
    return all_of(gpus, numbers_known);
  }
  List list(gpus, numbers_known);
  for (std::size_t begin = 0; begin <= asked->size();) {
    const std::size_t end = std::min(asked->find(',', begin), asked->size());
    if (!list.take(without_blanks(asked->substr(begin, end - begin)))) {
      break;
    }
    begin = end + 1;
  }
  return std::move(list).taken();
}

}  // namespace ration::runtime
