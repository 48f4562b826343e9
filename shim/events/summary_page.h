// The running totals of one process, in a page that outlives it: `ration run` reads it however the process ended.
// Layer: events (a leaf). Threads: writers use atomics; readers take the current values.
// Shared memory: fixed widths, magic, version and size; a process may die between any two stores.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/group_figures.h"
#include "events/event.h"

namespace ration::events {

inline constexpr int kMaxTalliedDevices = 128;
inline constexpr unsigned kMostUnknown = 3;  // names of functions that are kept
inline constexpr unsigned kMostGroups = 8;   // of a process
inline constexpr unsigned kMostHolders = 3;  // of the memory that a refused request lacked

// The fields that every allocation and free changes share one cache line.
struct DeviceTally {
  std::atomic<std::uint64_t> live_bytes;
  std::atomic<std::uint64_t> peak_bytes;
  std::atomic<std::uint64_t> allocs;
  std::atomic<std::uint64_t> frees;           // live blocks: allocs - frees
  std::atomic<std::uint64_t> reserved_bytes;  // slabs, and blocks of the driver's
  std::atomic<std::uint64_t> reserved_peak_bytes;
  std::atomic<std::uint64_t> waits;
  std::atomic<std::uint64_t> total;
  std::atomic<std::uint64_t> limit;  // effective
  std::atomic<std::uint32_t> limit_asked;
  std::atomic<std::uint32_t> overhead_unmeasured;  // contexts
  std::atomic<std::uint64_t> denied[kReasonCount];
  std::atomic<std::uint64_t> group_limit;  // 0: none
  std::atomic<std::uint64_t> granules;     // that the pools hold
  std::atomic<std::uint64_t> granules_peak;
  std::atomic<std::uint64_t> stitched;                  // blocks, ever
  std::atomic<std::uint64_t> overhead_peak;             // of the driver, on its own account
  std::atomic<std::uint64_t> overhead[kOverheadKinds];  // as it was then
};

// Design: design/log.md#summary-page
struct SummaryPage {
  static constexpr std::uint64_t kMagic = 0x31594c4c4154'4152;  // "RATALLY1", little-endian
  static constexpr std::uint32_t kVersion = 15;

  std::atomic<std::uint64_t> magic;  // written last: a page without it is incomplete
  std::uint32_t version;
  std::uint32_t size;
  std::int64_t pid;
  char program[48];
  std::atomic<std::uint32_t> device_count;
  std::atomic<std::uint32_t> lost_records;  // of the log, for want of room or memory; stops at its largest value
  std::atomic<std::uint64_t> failed_frees;
  std::atomic<std::uint64_t> null_frees;
  std::atomic<std::uint64_t> failed_allocs;   // by the driver, for another reason than memory
  std::atomic<std::uint64_t> refused_shares;  // handles for sharing memory, which `denied` does not count
  std::atomic<std::uint64_t> host_bytes;      // pinned
  std::atomic<std::uint64_t> host_peak_bytes;
  DeviceTally devices[kMaxTalliedDevices];
  // Functions of the driver that the program asked for, that are not known, and that may take memory.
  std::atomic<std::uint64_t> unknown_of_memory;
  std::atomic<std::uint32_t> unknown_kept;    // places that were given out, and asked for in vain
  std::atomic<std::uint32_t> unknown_is_cut;  // 1: names that were asked for later were not counted
  struct Name {
    std::atomic<std::uint32_t> is_written;
    char text[108];
  } unknown[kMostUnknown];
  std::atomic<std::uint64_t> log_bytes;  // of `log`, and written after it; 0: no log
  char log[4096];                        // the path, absolute
  // Of requests of a device that were refused, but on purpose: the largest, and by how much one was more than there
  // was.
  struct Refused {
    std::atomic<std::uint64_t> largest, lacking;
  } refused[kMaxTalliedDevices];
  // Who held it when a group or a device was full first.
  struct Holders {
    std::atomic<std::uint32_t> is_taken;  // by the thread that writes them
    std::atomic<std::uint32_t> count;     // written after them
    struct Holder {
      std::uint64_t reserved, guarantee;
      std::int32_t pid;
      char program[108];  // the end of its path
    } of[kMostHolders];
  } holders[kMaxTalliedDevices];
  // The groups that the process is in, and what it saw of them. `kind` is of ledger::GroupKind.
  struct Group {
    std::atomic<std::uint32_t> is_written;
    std::uint32_t kind;
    char name[72];
  } groups[kMostGroups];
  GroupFigures group_figures[kMaxTalliedDevices][kMostGroups];
  std::atomic<std::uint32_t> limit_is_later[kMaxTalliedDevices];  // 1: it was set while the process ran
  std::atomic<std::uint64_t> preallocated[kMaxTalliedDevices];    // bytes that pools took at once, ever
  char uuids[kMaxTalliedDevices][48];     // of the devices, as the driver prints them; written before device_count
  std::atomic<std::uint32_t> lost_error;  // why the latest of `lost_records` was not written: an errno
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(offsetof(SummaryPage, pid) == 16 && offsetof(SummaryPage, device_count) == 72 &&
              offsetof(SummaryPage, devices) == 128 && sizeof(DeviceTally) == 192 &&
              offsetof(SummaryPage, unknown_of_memory) == 128 + kMaxTalliedDevices * sizeof(DeviceTally) &&
              sizeof(SummaryPage::Name) == 112);

// A copy of a page.
struct Summary {
  struct Group {
    std::uint32_t kind;
    std::string name;
    std::uint64_t limit;         // 0: none
    std::uint64_t most_claimed;  // by all members
  };
  struct Device {
    std::uint64_t total, limit, live_bytes, live_count, peak_bytes, allocs, frees;
    bool limit_asked;
    std::uint64_t denied[kReasonCount];
    std::uint64_t reserved_bytes, reserved_peak_bytes, waits;
    std::uint64_t group_limit;  // 0: none
    std::uint64_t preallocated;
    std::uint64_t overhead_peak;
    std::uint64_t overhead[kOverheadKinds];
    std::uint32_t overhead_unmeasured;
    std::uint64_t largest_refused, most_lacking;
    bool limit_is_later;  // than the process's start
    std::string uuid;
    std::vector<Group> groups;
    std::vector<Holder> holders;  // those of memory that the first refusal lacked, which held most
  };
  std::int64_t pid = 0;
  std::string program;
  std::uint64_t failed_frees = 0, null_frees = 0, failed_allocs = 0, refused_shares = 0, lost_records = 0;
  int lost_error = 0;  // errno, of the latest lost record
  std::uint64_t host_bytes = 0, host_peak_bytes = 0;
  std::vector<Device> devices;          // by ordinal; an unused device has total 0
  std::uint64_t unknown_of_memory = 0;  // functions, as in the page
  bool unknown_is_cut = false;          // there may be more
  std::vector<std::string> unknown;     // the first of them
  std::string log;                      // the path of its file; empty: none
};

// Maps a fresh page at `directory`/`pid` (0600), or `pid`.2 and so on: an existing file belongs to another program that
// ran under this ID, or that runs under it in another namespace. Private memory where that fails or `directory` is
// empty. Never unmapped. nullptr only if no memory can be mapped.
SummaryPage *create_summary_page(const std::string &directory, std::int64_t pid, const std::string &program);

// Names one of the groups of the process. REQUIRES: number < kMostGroups.
void publish_group(SummaryPage &page, unsigned number, std::uint32_t kind, const std::string &name);

// Who holds what a request of the device lacked; the first of them stay.
void publish_holders(SummaryPage &page, int device, const std::vector<Holder> &holders);

// Says in the page where the process writes its log.
void publish_log(SummaryPage &page, const std::string &path);

// Reads a page file. False: not a page of this version.
bool read_summary(const std::string &file, Summary &summary);

}  // namespace ration::events
