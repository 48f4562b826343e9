#include "events/journal.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/file_name.h"
#include "base/held.h"
#include "base/thread_number.h"
#include "events/explained_events.h"
#include "events/json_lines.h"
#include "events/process_tree.h"

namespace ration::events {
namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

Journal::Journal(JournalOptions options, std::string &problem)
    : options_(std::move(options)), start_ns_(now_ns()), file_(options_.limit_changes) {
  process_.pid = getpid();
  process_.executable = executable();
  tally_ = create_summary_page(options_.summary_directory, process_.pid, std::string(file_name(process_.executable)));
  if (tally_ == nullptr) {
    static SummaryPage unreadable;  // there is no memory for a page, but the totals need some place
    tally_ = &unreadable;
  }
  if (options_.log.empty()) {
    return;
  }
  process_.parent = getppid();
  process_.host = host_name();
  process_.arguments = command_line();
  process_.tree = process_tree(options_.tree_marks);
  process_.start_unix_ns = static_cast<std::int64_t>(unix_ns());
  std::string why;
  Guard guard(writer_);
  logging_ = file_.claim(options_.log, process_.tree, process_.pid, why);
  if (logging_) {
    publish_log(*tally_, file_.path());
  }
  if (!logging_) {
    problem = options_.log + ": " + why;
  } else if (options_.stacks != Stacks::none) {
    stacks_ = std::make_unique<CallStacks>(process_.executable, options_.stacks == Stacks::python);
  }
}

__attribute__((noinline)) std::uint64_t Journal::stack_here() noexcept {
  return is_inherited()
             ? 0
             : stacks_->here([this](const std::vector<std::string> &records) { return write_stack(records); });
}

bool Journal::write_stack(const std::vector<std::string> &records) {
  if (!described()) {
    describe({}, 0);
  }
  for (const std::string &record : records) {
    Line line;
    line.text.append(record);
    Guard guard(writer_);
    if (!write(&line, now_ns())) {
      lose_one();
      return false;
    }
  }
  return true;
}

void Journal::note_limit(int device, bool asked, std::uint64_t bytes) noexcept {
  DeviceTally &tally = tally_->devices[device];
  tally.limit.store(bytes, std::memory_order_relaxed);
  tally.limit_asked.store(asked ? 1 : 0, std::memory_order_relaxed);
  tally_->limit_is_later[device].store(1, std::memory_order_relaxed);
}

void Journal::describe(std::vector<DeviceFacts> devices, int driver_version) noexcept try {
  for (const DeviceFacts &device : devices) {
    DeviceTally &tally = tally_->devices[device.ordinal];
    tally.total.store(device.total, std::memory_order_relaxed);
    tally.limit.store(device.limit, std::memory_order_relaxed);
    tally.limit_asked.store(device.limit_asked ? 1 : 0, std::memory_order_relaxed);
    tally.group_limit.store(device.group_limit, std::memory_order_relaxed);
    device.uuid.copy(tally_->uuids[device.ordinal], sizeof(tally_->uuids[device.ordinal]));
  }
  // Pairs with read_summary().
  tally_->device_count.store(static_cast<std::uint32_t>(devices.size()), std::memory_order_release);
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
      if (options_.log_size != 0) {
        meta_line_ = line;
        next_part_at_ = options_.log_size;
      }
      first_line_ = std::move(line);
      described_.store(true, std::memory_order_release);  // pairs with described()
      write(nullptr, now_ns());
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
    if (event.kind == Kind::managed) {
      gain(tally_->managed_bytes, tally_->managed_peak_bytes, event.size);
    }
    return;
  }
  DeviceTally &tally = tally_->devices[event.device];
  if (event.source == Source::driver) {  // first, so that a reader never sees more used than reserved
    gain_reserved(event.device, event.size);
  }
  count_alloc(tally, event.size);
  if (event.stitched) {
    bump(tally.stitched);
  }
}

void Journal::count(const Free &event) {
  if (event.kind == Kind::host) {
    tally_->host_bytes.fetch_sub(event.size, std::memory_order_relaxed);
    return;
  }
  if (!event.charged) {
    if (event.kind == Kind::managed) {
      tally_->managed_bytes.fetch_sub(event.size, std::memory_order_relaxed);
    }
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
  if (!event.sharing) {
    publish_refusal(*tally_, event.device,
                    {event.requested, event.lacking(), event.lacking_at_least(),
                     event.device_free ? event.largest_free : UINT64_MAX});
    publish_holders(*tally_, event.device, event.holders, event.more_holders);
  }
}

void Journal::count(const SlabAlloc &event) {
  DeviceTally &tally = tally_->devices[event.device];
  gain_reserved(event.device, event.size);
  if (event.granule) {
    gain(tally.granules, tally.granules_peak, 1);
  }
  if (std::string_view(event.why) == "preallocate") {
    tally_->preallocated[event.device].fetch_add(event.size, std::memory_order_relaxed);
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
    gain_reserved(event.device, event.pool_reserved - event.before);
  } else {
    tally.reserved_bytes.fetch_sub(event.before - event.pool_reserved, std::memory_order_relaxed);
  }
}

void Journal::count(const Wait &event) {
  bump(tally_->devices[event.device].waits);
}

namespace {

std::uint64_t stack_of_call() {
  const RationThread *const thread = held::thread();
  return thread != nullptr ? thread->stack : 0;
}

}  // namespace

// With a log, the totals change under the writer's lock, so the peak in `end` is exactly what the lines add up to.
template <class Event>
void Journal::record(const Event &event, std::uint64_t at_ns) noexcept {
  explain_event(event);
  if (!logging_) {
    if constexpr (!std::is_same_v<Event, Oom>) {
      count(event);
    } else if (!is_inherited()) {  // there, another thread of the parent may have held the lock
      Guard guard(writer_);
      count(event);
    }
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
    format(line, event, thread_number());
    constexpr bool kHasStack = std::is_same_v<Event, Alloc> || std::is_same_v<Event, Oom>;
    const std::uint64_t stack = kHasStack && stacks_ != nullptr ? stack_of_call() : 0;
    at_ns = at_ns != 0 ? at_ns : now_ns();
    Guard guard(writer_);
    count(event);
    counted = true;
    if (!write(&line, at_ns, stack)) {
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

// Fails open: if no new file can be begun, the present one may grow by as much again.
void Journal::begin_part(std::size_t more) {
  if (file_.size() + more <= next_part_at_ || ended_ || !first_line_.empty()) {
    return;
  }
  std::string line = meta_line_.substr(0, meta_line_.size() - 2);  // without its brace and newline
  line += ",\"part\":" + std::to_string(part_ + 1);
  line += ",\"first_seq\":" + std::to_string(seq_ + 1);
  line += "}\n";
  if (file_.begin_anew(line)) {
    ++part_;
    next_part_at_ = std::max<std::uint64_t>(options_.log_size, line.size() + LogFile::kPage);
    if (stacks_ != nullptr) {
      stacks_->write_again();
    }
  } else {
    next_part_at_ += options_.log_size;
  }
}

bool Journal::write(Line *line, std::uint64_t at_ns, std::uint64_t stack) {
  begin_part(line != nullptr ? line->text.size() : 0);
  if (stack != 0 && stacks_->is_kept(stack)) {
    format_stack(*line, CallStacks::number_of(stack));
  }
  const std::uint64_t ts = stamp(at_ns);
  std::uint64_t seq = seq_;
  if (line != nullptr && first_line_.empty() && dropped_ == 0) [[likely]] {
    close_line(*line, ts, ++seq);
    if (!add(*line, seq)) {
      return false;
    }
    seq_ = seq;
    return true;
  }
  Line lines;
  lines.text.append(first_line_);
  if (dropped_ > 0) {
    format_dropped(lines, dropped_);
    close_line(lines, ts, ++seq);
  }
  if (line != nullptr) {
    close_line(*line, ts, ++seq);
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
    close_line(lines, last_ns_, seq + 1);
  }
  return file_.write({lines.text.data(), lines.text.size()}, lines.text.size() - size, start_ns_ + last_ns_);
}

template void Journal::record(const Alloc &, std::uint64_t) noexcept;
template void Journal::record(const Free &, std::uint64_t) noexcept;
template void Journal::record(const Oom &, std::uint64_t) noexcept;
template void Journal::record(const SlabAlloc &, std::uint64_t) noexcept;
template void Journal::record(const SlabFree &, std::uint64_t) noexcept;
template void Journal::record(const Wait &, std::uint64_t) noexcept;
template void Journal::record(const Trim &, std::uint64_t) noexcept;
template void Journal::record(const Sample &, std::uint64_t) noexcept;

void Journal::publish(const RationCoverage &asked) noexcept {
  if (!is_inherited()) {
    asked_names_.publish(asked, *tally_);
  }
}

}  // namespace ration::events
