// Journals and events for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "events/journal.h"
#include "events/json_lines.h"

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
  return {address,
          size,
          size,
          device,
          1,
          "cuMemAlloc_v2",
          events::Kind::device,
          events::Source::driver,
          events::Via::driver,
          5};
}

inline events::Free a_free(std::uint64_t address, std::uint64_t size, int device = 0) {
  return {address, size, device, 1, "cuMemFree_v2"};
}

inline events::Alloc a_pool_alloc(std::uint64_t address, std::uint64_t size, std::uint64_t slab, int device = 0) {
  return {
      address, size, size, device, 1, "cuMemAlloc_v2", events::Kind::device, events::Source::pool, events::Via::driver,
      5,       slab};
}

inline events::Free a_pool_free(std::uint64_t address, std::uint64_t size, int device = 0) {
  return {address, size, device, 1, "cuMemFree_v2", 0, events::Source::pool};
}

inline events::SlabAlloc a_slab_alloc(std::uint64_t slab, std::uint64_t size, int device = 0) {
  return {slab << 40, size, device, 1, slab, "cuMemAlloc_v2", "grow", 7};
}

inline events::SlabFree a_slab_free(std::uint64_t slab, std::uint64_t size, int device = 0) {
  return {slab << 40, size, device, 1, slab, "cuCtxDestroy_v2"};
}

inline events::SlabAlloc a_granule(std::uint64_t number, std::uint64_t size, int device = 0) {
  events::SlabAlloc event{number, size, device, 1, number, "cuMemCreate", "grow", 7};
  event.granule = true;
  return event;
}

inline events::SlabFree a_granule_end(std::uint64_t number, std::uint64_t size, int device = 0) {
  return {number, size, device, 1, number, "cuMemAlloc_v2", true};
}

inline events::Alloc a_stitched_alloc(std::uint64_t address, std::uint64_t size, std::uint64_t slab, int device = 0) {
  events::Alloc event = a_pool_alloc(address, size, slab, device);
  event.stitched = true;
  return event;
}

inline events::Wait a_wait(int device = 0) {
  return {device, "cuMemAlloc_v2", "event", 3, 1536, 900, 0};
}

inline events::Oom an_oom(events::Reason reason, int device = 0) {
  return {device, "cuMemAlloc_v2", 1000, reason, 10, 20, 30, 5};
}

inline events::Oom a_refused_share(int device = 0) {
  events::Oom event = an_oom(events::Reason::pool_holds, device);
  event.api = "cuIpcGetMemHandle";
  event.sharing = true;
  return event;
}

// The line for one event in thread 7, without its newline.
template <class Event>
std::string written(const Event &event) {
  events::Line line;
  events::format(line, event, 7);
  events::close_line(line, 8, 9);
  return {line.text.data(), line.text.size() - 1};
}

}  // namespace ration::test
