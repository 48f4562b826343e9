// Writes the `end` record of a log. It stays the last line and counts lost records, even on a full disk.
#include <algorithm>

#include "base/clock.h"
#include "events/journal.h"
#include "events/json_lines.h"

namespace ration::events {

// Called after a failed write, because the previous `end` then counts one loss too few, or was cut off. A new one fits
// in its place.
void Journal::mend_end() noexcept try {
  if (ended_ && first_line_.empty()) {
    Line nothing;
    stamp(now_ns());
    add(nothing, seq_);
  }
} catch (...) {  // fails open
}

void Journal::lose_one() noexcept {
  ++dropped_;
  ++dropped_in_all_;
  publish_losses();
  mend_end();
}

void Journal::publish_losses() noexcept {
  tally_->lost_records.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(dropped_in_all_, UINT32_MAX)),
                             std::memory_order_relaxed);
  tally_->lost_error.store(static_cast<std::uint32_t>(file_.error()), std::memory_order_relaxed);
}

// Formats the last two lines of a log whose last record is number `seq`. Returns the size of the very last one.
std::size_t Journal::format_ending(Line &lines, std::uint64_t seq, std::uint64_t lost) {
  format_dropped(lines, lost);
  close_line(lines, last_ns_, ++seq);
  const std::size_t before = lines.text.size();
  format_end(lines, *tally_, dropped_in_all_, asked_);
  close_line(lines, last_ns_, ++seq);
  return lines.text.size() - before;
}

// On a full disk, overwrites the last records with the end, which counts them as lost: overwriting needs no disk space.
// Allocating space ahead was rejected: a sandbox may kill the program for the system call.
bool Journal::end_over_records() {
  constexpr std::size_t kMoreDigits = 64;  // that counts may gain by what is replaced
  Line draft;
  format_ending(draft, seq_, dropped_);
  std::string_view old = file_.last_lines(draft.text.size() + kMoreDigits);
  if (old.empty() || !first_line_.empty()) {
    return false;
  }
  std::uint64_t events = 0;
  std::uint64_t counted = 0;  // losses that the replaced lines have already counted
  std::uint64_t lines_replaced = 0;
  for (; !old.empty(); old.remove_prefix(old.find('\n') + 1)) {
    const std::uint64_t count = count_in_dropped(old);
    events += count == 0 ? 1 : 0;
    counted += count;
    ++lines_replaced;
  }
  dropped_in_all_ += events;
  Line lines;
  const std::size_t tail = format_ending(lines, seq_ - lines_replaced, dropped_ + events + counted);
  if (!file_.replace_last({lines.text.data(), lines.text.size()}, tail)) {
    dropped_in_all_ -= events;
    return false;
  }
  seq_ = seq_ - lines_replaced + 1;
  dropped_ = 0;
  publish_losses();
  return true;
}

void Journal::end(const RationCoverage *asked) noexcept try {
  if (asked != nullptr) {
    publish(*asked);
  }
  if (const Taken taken = taken_.load(std::memory_order_acquire); taken != nullptr && !is_inherited()) {
    for (std::uint32_t device = 0; device < tally_->device_count.load(std::memory_order_relaxed); ++device) {
      taken(taken_of_, static_cast<int>(device));  // `ration set` may have changed a group's limit since
    }
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
  if (!write(nullptr, now_ns()) && !end_over_records()) {
    mend_end();
  }
} catch (...) {  // fails open
}

}  // namespace ration::events
