// Journals and events as a test needs them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "events/journal.h"

namespace ration::test {

inline events::JournalOptions logging_to(const std::string &path, std::string summary_directory = "") {
  events::JournalOptions options;
  options.log = path;
  options.tree_marks = {"RATION_TEST_NO_PARENT_HAS_THIS=" + path};
  options.summary_directory = std::move(summary_directory);
  options.meta.mode = "direct";
  return options;
}

inline std::vector<events::DeviceFacts> two_devices() {
  return {{0, "GPU-0001", "one", 16ull << 30, 4ull << 30, true}, {1, "GPU-0002", "two", 8ull << 30, 8ull << 30, false}};
}

inline events::Alloc an_alloc(std::uint64_t address, std::uint64_t size, int device = 0) {
  return {address, size, size, device, 1, "cuMemAlloc_v2", "device", "driver", events::Via::driver, 5};
}

inline events::Free a_free(std::uint64_t address, std::uint64_t size, int device = 0) {
  return {address, size, device, 1, "cuMemFree_v2"};
}

inline events::Oom an_oom(events::Reason reason, int device = 0) {
  return {device, "cuMemAlloc_v2", 1000, reason, 10, 20, 30, 5};
}

}  // namespace ration::test
