#include "events/journal.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <numeric>
#include <utility>

#include "events/json_lines.h"
#include "events/process_tree.h"

namespace ration::events {
namespace {

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

std::string base_name(const std::string &path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

Journal::Journal(JournalOptions options, std::string &problem)
    : options_(std::move(options)), start_ns_(clock_ns(CLOCK_MONOTONIC)) {
  process_.pid = getpid();
  process_.executable = executable();
  tally_ = create_summary_page(options_.summary_directory, process_.pid, base_name(process_.executable));
  if (tally_ == nullptr) {
    static SummaryPage unreadable;  // no memory for a page: the totals need a place nevertheless
    tally_ = &unreadable;
  }
  if (options_.log.empty()) {
    return;
  }
  process_.parent = getppid();
  process_.host = host_name();
  process_.arguments = command_line();
  process_.tree = process_tree(options_.tree_marks);
  process_.start_unix_ns = static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME));
  std::string why;
  Guard guard(writer_);
  logging_ = file_.claim(options_.log, process_.tree, process_.pid, why);
  if (!logging_) {
    problem = options_.log + ": " + why;
  }
}

std::uint64_t Journal::now_ns() const {
  return clock_ns(CLOCK_MONOTONIC) - start_ns_;
}

void Journal::describe(std::vector<DeviceFacts> devices, int driver_version) noexcept try {
  for (const DeviceFacts &device : devices) {
    DeviceTally &tally = tally_->devices[device.ordinal];
    tally.total.store(device.total, std::memory_order_relaxed);
    tally.limit.store(device.limit, std::memory_order_relaxed);
    tally.limit_asked.store(device.limit_asked ? 1 : 0, std::memory_order_relaxed);
    tally.group_limit.store(device.group_limit, std::memory_order_relaxed);
  }
  tally_->device_count.store(static_cast<std::uint32_t>(devices.size()), std::memory_order_relaxed);
  if (logging_ && !is_inherited()) {
    Meta meta = options_.meta;
    const bool another = std::all_of(devices.begin(), devices.end(), [&](const DeviceFacts &device) {
      return !device.mode.empty() && device.mode == devices.front().mode;
    });
    if (another && !devices.empty()) {
      meta.mode = devices.front().mode;
    }
    meta.devices = std::move(devices);
    meta.driver_version = driver_version;
    std::string line = meta_line(meta, process_);
    Guard guard(writer_);
    if (!described_.load(std::memory_order_relaxed)) {
      first_line_ = std::move(line);
      described_.store(true, std::memory_order_release);  // pairs with described()
      write(nullptr);
    }
  }
  described_.store(true, std::memory_order_release);
} catch (...) {
  described_.store(true, std::memory_order_release);
}

void Journal::count_overhead(int device, const std::array<std::uint64_t, kOverheadKinds> &bytes) noexcept {
  DeviceTally &tally = tally_->devices[device];
  const std::uint64_t sum = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  if (sum > tally.overhead_peak.load(std::memory_order_relaxed)) {
    tally.overhead_peak.store(sum, std::memory_order_relaxed);
    for (int kind = 0; kind < kOverheadKinds; ++kind) {
      tally.overhead[kind].store(bytes[static_cast<std::size_t>(kind)], std::memory_order_relaxed);
    }
  }
}

void Journal::count(const Alloc &event) {
  if (event.kind == Kind::host) {
    gain(tally_->host_bytes, tally_->host_peak_bytes, event.size);
    return;
  }
  if (!event.charged) {
    return;
  }
  DeviceTally &tally = tally_->devices[event.device];
  count_alloc(tally, event.size);
  if (event.stitched) {
    bump(tally.stitched);
  }
  if (event.source == Source::driver) {
    gain(tally.reserved_bytes, tally.reserved_peak_bytes, event.size);
  }
}

void Journal::count(const Free &event) {
  if (event.kind == Kind::host) {
    tally_->host_bytes.fetch_sub(event.size, std::memory_order_relaxed);
    return;
  }
  if (!event.charged) {
    return;
  }
  DeviceTally &tally = tally_->devices[event.device];
  count_free(tally, event.size);
  if (event.source == Source::driver) {
    tally.reserved_bytes.fetch_sub(event.size, std::memory_order_relaxed);
  }
}

void Journal::count(const Oom &event) {
  bump(event.sharing ? tally_->refused_shares : tally_->devices[event.device].denied[static_cast<int>(event.reason)]);
}

void Journal::count(const SlabAlloc &event) {
  DeviceTally &tally = tally_->devices[event.device];
  gain(tally.reserved_bytes, tally.reserved_peak_bytes, event.size);
  if (event.granule) {
    gain(tally.granules, tally.granules_peak, 1);
  }
}

void Journal::count(const SlabFree &event) {
  DeviceTally &tally = tally_->devices[event.device];
  tally.reserved_bytes.fetch_sub(event.size, std::memory_order_relaxed);
  if (event.granule) {
    tally.granules.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Journal::count(const Sample &event) {
  DeviceTally &tally = tally_->devices[event.device];
  if (event.pool_reserved > event.before) {
    gain(tally.reserved_bytes, tally.reserved_peak_bytes, event.pool_reserved - event.before);
  } else {
    tally.reserved_bytes.fetch_sub(event.before - event.pool_reserved, std::memory_order_relaxed);
  }
}

void Journal::count(const Wait &event) {
  bump(tally_->devices[event.device].waits);
}

// The totals change under the writer's lock, so that the peak in `end` is exactly what the lines add up to.
template <class Event>
void Journal::record(const Event &event) noexcept {
  if (!logging_) {
    count(event);
    return;
  }
  if (is_inherited()) {
    return;
  }
  bool counted = false;
  try {
    if (!described()) {
      describe({}, 0);
    }
    Line line;
    format(line, event, gettid());
    Guard guard(writer_);
    count(event);
    counted = true;
    if (!write(&line)) {
      lose_one();
    }
  } catch (...) {  // out of memory: the line is lost, the totals are kept
    Guard guard(writer_);
    if (!counted) {
      count(event);
    }
    lose_one();
  }
}

bool Journal::write(Line *line) {
  Line lines;
  lines.text.append(first_line_);
  std::uint64_t seq = seq_;
  if (dropped_ > 0) {
    format_dropped(lines, dropped_);
    close_line(lines, now_ns(), ++seq);
  }
  if (line != nullptr) {
    close_line(*line, now_ns(), ++seq);
    lines.text.append(line->text);
  }
  if (!add(lines, seq)) {
    return false;
  }
  seq_ = seq;
  dropped_ = 0;
  first_line_.clear();
  return true;
}

bool Journal::add(Line &lines, std::uint64_t seq) {
  const std::size_t size = lines.text.size();
  if (ended_) {
    format_end(lines, *tally_, dropped_in_all_, asked_);
    close_line(lines, now_ns(), seq + 1);
  }
  return file_.write({lines.text.data(), lines.text.size()}, lines.text.size() - size);
}

// Called after a failed write: the previous `end` reports one loss too few or was cut off. A new one fits in its place.
void Journal::mend_end() noexcept try {
  if (ended_ && first_line_.empty()) {
    Line nothing;
    add(nothing, seq_);
  }
} catch (...) {  // fails open
}

void Journal::lose_one() noexcept {
  ++dropped_;
  ++dropped_in_all_;
  tally_->lost_records.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(dropped_in_all_, UINT32_MAX)),
                             std::memory_order_relaxed);
  mend_end();
}

template void Journal::record(const Alloc &) noexcept;
template void Journal::record(const Free &) noexcept;
template void Journal::record(const Oom &) noexcept;
template void Journal::record(const SlabAlloc &) noexcept;
template void Journal::record(const SlabFree &) noexcept;
template void Journal::record(const Wait &) noexcept;
template void Journal::record(const Trim &) noexcept;
template void Journal::record(const Sample &) noexcept;

void Journal::publish(const RationCoverage &asked) noexcept {
  if (!is_inherited()) {
    asked_names_.publish(asked, *tally_);
  }
}

void Journal::end(const RationCoverage *asked) noexcept try {
  if (asked != nullptr) {
    publish(*asked);
  }
  if (!logging_ || is_inherited()) {
    return;
  }
  if (!described()) {
    describe({}, 0);
  }
  Guard guard(writer_);
  if (ended_) {
    return;
  }
  asked_ = asked;
  ended_ = true;
  if (!write(nullptr)) {
    mend_end();
  }
} catch (...) {  // fails open
}

}  // namespace ration::events
