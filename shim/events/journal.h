// Records events, always in running totals and, if a log was asked for, as one JSON line each.
// Layer: events (a leaf). Threads: every call is safe from any thread. Fails open: nothing here throws, and nothing
// blocks except one write(2). Called from: hooks, exit. Owns: the log file, which is never closed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/address_space.h"
#include "base/lock.h"
#include "base/raise_to.h"
#include "core_abi.h"
#include "events/asked_names.h"
#include "events/call_stacks.h"
#include "events/event.h"
#include "events/log_file.h"
#include "events/summary_page.h"

namespace ration::events {

struct Line;

enum class Stacks { none, native, python };

struct JournalOptions {
  std::string log;                               // path with placeholders expanded; empty: no log
  std::vector<std::string> tree_marks;           // NAME=value settings that all processes of a run inherit
  std::string summary_directory;                 // empty: no summary page outlives the process
  const std::uint32_t *limit_changes = nullptr;  // as for LogFile
  Stacks stacks = Stacks::none;                  // whether the stacks of allocations and refusals are logged
  std::uint64_t log_size = 0;                    // the bytes after which a new file begins; 0: never
  Meta meta;                                     // without devices
};

// Design: design/log.md#synchronous-writes
class Journal {
 public:
  // If a log was asked for but cannot be opened, `problem` receives a sentence that says why.
  Journal(JournalOptions options, std::string &problem);

  bool logging() const { return logging_; }
  // True if anything will show the totals: a log, or a page that outlives the process.
  bool is_read() const { return logging_ || !options_.summary_directory.empty(); }

  // Takes the facts of the devices and writes the first line. Called as soon as the driver can be asked; later calls do
  // nothing.
  void describe(std::vector<DeviceFacts> devices, int driver_version) noexcept;
  bool described() const { return described_.load(std::memory_order_acquire); }

  bool has_stacks() const { return stacks_ != nullptr; }
  // The number of the calling thread's stack in the log, for the events of its present call; 0 if unknown. See
  // CallStacks::here(). REQUIRES: has_stacks().
  std::uint64_t stack_here() noexcept;

  // Records an event: any struct of event.h, from Alloc to Sample, that has a record of its own in the log. `at_ns` is
  // the time of the event by ration::now_ns(); 0: now.
  template <class Event>
  void record(const Event &event, std::uint64_t at_ns = 0) noexcept;
  // Counts, in the totals only, a block that was taken from the pool or freed. No record. REQUIRES: !logging().
  void count_pool_alloc(int device, std::uint64_t bytes) noexcept { count_alloc(tally_->devices[device], bytes); }
  void count_pool_free(int device, std::uint64_t bytes) noexcept { count_free(tally_->devices[device], bytes); }
  void count_failed_alloc() noexcept { bump(tally_->failed_allocs); }
  void count_failed_free() noexcept { bump(tally_->failed_frees); }
  void count_null_free() noexcept { bump(tally_->null_frees); }

  // Sets how much memory the driver itself uses on a device, by kind. REQUIRES: one thread at a time for each device.
  void count_overhead(int device, const std::array<std::uint64_t, kOverheadKinds> &bytes) noexcept;
  // Notes that the limit of a device was set while the process was running.
  void note_limit(int device, bool asked, std::uint64_t bytes) noexcept;
  // Counts a context whose memory could not be measured and is therefore missing from the overhead.
  void count_unmeasured(int device) noexcept {
    tally_->devices[device].overhead_unmeasured.fetch_add(1, std::memory_order_relaxed);
  }

  // Sets a function that is called with `of` and a device after each event that increases the memory that the process
  // holds on that device.
  using Taken = void (*)(void *of, int device);
  void when_taken(Taken taken, void *of) noexcept {
    taken_of_ = of;
    taken_.store(taken, std::memory_order_release);  // pairs with gain_reserved()
  }

  // Names one of the process's groups in the totals. group_figures(): the place of that group's figures for a device.
  // REQUIRES: group < kMostGroups.
  void name_group(unsigned group, std::uint32_t kind, const std::string &name, std::uint64_t random) noexcept {
    publish_group(*tally_, group, kind, name, random);
  }
  GroupFigures &group_figures(unsigned group, int device) noexcept { return tally_->group_figures[device][group]; }

  // Writes the `end` record. Later events (from destructors that run after atexit handlers) write it again, so that the
  // last line is always a correct `end`. `asked` may be null; it must outlive the journal.
  void end(const RationCoverage *asked) noexcept;

  // Called after a name was added to `asked`, the names that the program asked for.
  void publish(const RationCoverage &asked) noexcept;

  const SummaryPage &tally() const { return *tally_; }
  // The bytes of the program's blocks on the device, from any source.
  std::uint64_t live_bytes(int device) const {
    return tally_->devices[device].live_bytes.load(std::memory_order_relaxed);
  }

 private:
  static void bump(std::atomic<std::uint64_t> &counter) { counter.fetch_add(1, std::memory_order_relaxed); }
  static void gain(std::atomic<std::uint64_t> &bytes, std::atomic<std::uint64_t> &peak, std::uint64_t more) {
    raise_to(peak, bytes.fetch_add(more, std::memory_order_relaxed) + more);
  }
  void gain_reserved(int device, std::uint64_t more) {
    gain(tally_->devices[device].reserved_bytes, tally_->devices[device].reserved_peak_bytes, more);
    if (const Taken taken = taken_.load(std::memory_order_acquire)) {
      taken(taken_of_, device);
    }
  }
  static void count_alloc(DeviceTally &tally, std::uint64_t bytes) {
    bump(tally.allocs);
    gain(tally.live_bytes, tally.peak_bytes, bytes);
  }
  static void count_free(DeviceTally &tally, std::uint64_t bytes) {
    bump(tally.frees);
    tally.live_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  }
  void count(const Alloc &event);
  void count(const Free &event);
  void count(const Oom &event) REQUIRES(writer_);
  void count(const SlabAlloc &event);
  void count(const SlabFree &event);
  void count(const Wait &event);
  void count(const Sample &event);
  void count(const Trim &) {}  // its slab_free records are counted instead
  // Adds pending lines (the first line, a `dropped` record), then `line`, which may be null. `line` gets the number of
  // its stack if that stack was written in the same part of the log. Returns false if nothing was added.
  bool write(Line *line, std::uint64_t at_ns, std::uint64_t stack = 0) REQUIRES(writer_);
  // Begins the next part of the log if `more` bytes would make this part too long.
  void begin_part(std::size_t more) REQUIRES(writer_);
  // Adds `lines`, whose last record is number `seq` and has the latest time stamp. If there already is an `end` record,
  // writes that record again after `lines`, so that it stays last.
  bool add(Line &lines, std::uint64_t seq) REQUIRES(writer_);
  void mend_end() noexcept REQUIRES(writer_);
  bool end_over_records() REQUIRES(writer_);
  std::size_t format_ending(Line &lines, std::uint64_t seq, std::uint64_t lost) REQUIRES(writer_);
  void publish_losses() noexcept REQUIRES(writer_);
  void lose_one() noexcept REQUIRES(writer_);
  // The time stamp of the next record. It never decreases, even if threads arrive here in another order than the one in
  // which they read the clock.
  std::uint64_t stamp(std::uint64_t at_ns) REQUIRES(writer_) {
    return last_ns_ = std::max(last_ns_, at_ns - start_ns_);
  }
  bool write_stack(const std::vector<std::string> &records);
  // True in a child in which no fork handler ran, so that the log is its parent's.
  bool is_inherited() const { return this_address_space() != address_space_; }

  const std::uint64_t address_space_ = this_address_space();
  JournalOptions options_;
  Process process_;
  std::uint64_t start_ns_;
  SummaryPage *tally_;
  std::atomic<Taken> taken_{nullptr};
  void *taken_of_ = nullptr;
  AskedNames asked_names_;
  bool logging_ = false;
  std::unique_ptr<CallStacks> stacks_;  // null: stacks were not asked for
  std::atomic<bool> described_{false};

  RankedMutex writer_{Rank::kLogWriter};
  LogFile file_ GUARDED_BY(writer_);
  std::string first_line_ GUARDED_BY(writer_);  // empty once it has been written
  std::string meta_line_ GUARDED_BY(writer_);   // the first line of every part; empty: the log has only one part
  std::uint64_t part_ GUARDED_BY(writer_) = 1;
  std::uint64_t next_part_at_ GUARDED_BY(writer_) = UINT64_MAX;  // bytes
  std::uint64_t seq_ GUARDED_BY(writer_) = 0;
  std::uint64_t last_ns_ GUARDED_BY(writer_) = 0;  // the latest time stamp
  std::uint64_t dropped_ GUARDED_BY(writer_) = 0;  // records lost since the last `dropped` record
  std::uint64_t dropped_in_all_ GUARDED_BY(writer_) = 0;
  bool ended_ GUARDED_BY(writer_) = false;
  const RationCoverage *asked_ GUARDED_BY(writer_) = nullptr;
};

}  // namespace ration::events
