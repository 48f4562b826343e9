#include "config/visible_devices.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace ration::config {
namespace {

// getenv's answer: the first of the name.
std::optional<std::string_view> value_of(std::string_view variable, const char *const *environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (entry.substr(0, variable.size()) == variable && entry.substr(variable.size(), 1) == "=") {
      return entry.substr(variable.size() + 1);
    }
  }
  return std::nullopt;
}

bool counts_as_cuda_does(const std::vector<MachineGpu> &gpus, const char *const *environment) {
  return value_of("CUDA_DEVICE_ORDER", environment) == "PCI_BUS_ID" ||
         std::all_of(gpus.begin(), gpus.end(),
                     [&](const MachineGpu &gpu) { return !gpu.model.empty() && gpu.model == gpus.front().model; });
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// The list of CUDA_VISIBLE_DEVICES, entry by entry.
class List {
 public:
  List(const std::vector<MachineGpu> &gpus, bool numbers_known) : gpus_(gpus), numbers_known_(numbers_known) {}

  // False: the entry names no device, or one that was named before. The list ends there (CUDA programming guide,
  // "CUDA environment variables").
  bool take(std::string_view entry) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
    if (error == std::errc{} && end == entry.data() + entry.size()) {
      return number < gpus_.size() && (numbers_known_ ? take_gpu(gpus_[number]) : take_unknown());
    }
    if (starts_with(entry, "GPU-")) {
      const MachineGpu *gpu = the_only_one([&](const MachineGpu &each) { return starts_with(each.uuid, entry); });
      return gpu != nullptr && take_gpu(*gpu);
    }
    const std::string *slice = starts_with(entry, "MIG-") ? slice_called(entry) : nullptr;
    return slice != nullptr && take_device(*slice);
  }

  std::vector<VisibleDevice> taken() && { return std::move(taken_); }

 private:
  template <class Holds>
  const MachineGpu *the_only_one(const Holds &holds) const {
    const auto first = std::find_if(gpus_.begin(), gpus_.end(), holds);
    return first != gpus_.end() && std::find_if(first + 1, gpus_.end(), holds) == gpus_.end() ? &*first : nullptr;
  }

  // By its whole name ("MIG-<uuid>", or "MIG-GPU-<uuid>/<gi>/<ci>" of older drivers) or an unambiguous beginning.
  const std::string *slice_called(std::string_view entry) const {
    const std::string *found = nullptr;
    int fitting = 0;
    for (const MachineGpu &gpu : gpus_) {
      for (const std::string &slice : gpu.slices) {
        if (slice == entry) {
          return &slice;
        }
        if (starts_with(slice, entry)) {
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
  // Of a GPU that is cut up CUDA shows a slice.
  bool take_gpu(const MachineGpu &gpu) { return gpu.slices.empty() ? take_device(gpu.uuid) : take_unknown(); }
  bool take_device(const std::string &uuid) {
    if (std::any_of(taken_.begin(), taken_.end(), [&](const VisibleDevice &device) { return device.uuid == uuid; })) {
      return false;
    }
    taken_.push_back({uuid, places_++});
    return true;
  }

  const std::vector<MachineGpu> &gpus_;
  const bool numbers_known_;
  std::vector<VisibleDevice> taken_;
  int places_ = 0;
};

// Of GPUs that are cut up and whole ones CUDA makes a choice of its own.
std::vector<VisibleDevice> all_of(const std::vector<MachineGpu> &gpus, bool numbers_known) {
  numbers_known =
      numbers_known && std::all_of(gpus.begin(), gpus.end(), [](const MachineGpu &gpu) { return gpu.slices.empty(); });
  std::vector<VisibleDevice> devices;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].slices.empty()) {
      devices.push_back({gpus[i].uuid, numbers_known ? static_cast<int>(i) : -1});
    }
  }
  return devices;
}

}  // namespace

std::vector<VisibleDevice> visible_devices(const std::vector<MachineGpu> &gpus, const char *const *environment) {
  const bool numbers_known = gpus.size() == 1 || counts_as_cuda_does(gpus, environment);
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

}  // namespace ration::config
