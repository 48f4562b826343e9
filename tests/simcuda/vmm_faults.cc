// Work that touches addresses which were unmapped under it. Layer: vmm.h. Threads: under Driver::mutex.
//
// An unmapped view is fresh memory without a page. Whether work has touched it, by a copy, a fill or a kernel, for
// reading or for writing, is what the kernel says of its pages.
#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "tests/simcuda/bytes.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/vmm.h"

namespace simcuda {
namespace {

bool has_pages(std::byte *view) {
  std::array<unsigned char, kVmmGranularity / kPage> resident{};
  if (::mincore(view, kVmmGranularity, resident.data()) != 0) return false;
  return std::any_of(resident.begin(), resident.end(), [](unsigned char page) { return (page & 1) != 0; });
}

std::vector<Mark> unfinished() {
  std::vector<Mark> marks;
  const auto add = [&marks](const Context &context) {
    for (const auto &stream : context.streams) {
      if (stream->completed < stream->submitted) marks.push_back({stream, stream->submitted});
    }
  };
  for (const Device &device : driver().devices) {
    if (device.primary != nullptr) add(*device.primary);
  }
  for (const auto &[handle, context] : driver().contexts) add(*context);
  return marks;
}

}  // namespace

void watch_unmapped(std::byte *view, std::uint64_t bytes) {
  const auto work = std::make_shared<const std::vector<Mark>>(unfinished());
  if (work->empty()) return;
  for (std::uint64_t at = 0; at < bytes; at += kVmmGranularity) driver().virtual_memory.lost[view + at] = work;
}

bool is_watched(const std::byte *view) {
  const auto &lost = driver().virtual_memory.lost;
  const auto after = lost.upper_bound(const_cast<std::byte *>(view));
  return after != lost.begin() && view < std::prev(after)->first + kVmmGranularity;
}

void unwatch(std::byte *view, std::uint64_t bytes) {
  auto &lost = driver().virtual_memory.lost;
  lost.erase(lost.lower_bound(view), lost.lower_bound(view + bytes));
}

void find_faults(const Stream &stream) {
  auto &lost = driver().virtual_memory.lost;
  for (auto at = lost.begin(); at != lost.end();) {
    const auto &[view, work] = *at;
    const bool may_touch = std::any_of(work->begin(), work->end(), [&stream](const Mark &mark) {
      return mark.stream.get() == &stream && mark.number >= stream.completed;
    });
    const bool touched = may_touch && has_pages(view);
    if (touched) stream.context->root->fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    const bool over = std::all_of(work->begin(), work->end(), [](const Mark &mark) { return mark.reached(); });
    at = touched || over ? lost.erase(at) : std::next(at);
  }
}

}  // namespace simcuda
