// The running totals of one process, in a file that outlives the process, so that `ration run` can read them however
// the process ended.
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
inline constexpr unsigned kMostUnknown = 3;  // unknown functions whose names are kept
inline constexpr unsigned kMostGroups = 8;   // groups of a process
inline constexpr unsigned kMostHolders = 3;  // holders of memory which a refused request lacked

// The fields that every allocation and free changes share one cache line.
struct DeviceTally {
  std::atomic<std::uint64_t> live_bytes;
  std::atomic<std::uint64_t> peak_bytes;
  std::atomic<std::uint64_t> allocs;
  std::atomic<std::uint64_t> frees;           // the number of live blocks is allocs - frees
  std::atomic<std::uint64_t> reserved_bytes;  // slabs, and blocks from the driver
  std::atomic<std::uint64_t> reserved_peak_bytes;
  std::atomic<std::uint64_t> waits;
  std::atomic<std::uint64_t> total;
  std::atomic<std::uint64_t> limit;  // effective
  std::atomic<std::uint32_t> limit_asked;
  std::atomic<std::uint32_t> overhead_unmeasured;  // contexts
  std::atomic<std::uint64_t> denied[kReasonCount];
  std::atomic<std::uint64_t> group_limit;  // 0: none
  std::atomic<std::uint64_t> granules;     // number of granules that the pools hold
  std::atomic<std::uint64_t> granules_peak;
  std::atomic<std::uint64_t> stitched;                  // number of blocks ever stitched
  std::atomic<std::uint64_t> overhead_peak;             // the most memory that the driver itself used
  std::atomic<std::uint64_t> overhead[kOverheadKinds];  // by kind, at that peak
};

// Design: design/log.md#summary-page
struct SummaryPage {
  static constexpr std::uint64_t kMagic = 0x31594c4c4154'4152;  // "RATALLY1", little-endian
  static constexpr std::uint32_t kVersion = 18;

  std::atomic<std::uint64_t> magic;  // written last, so a page without it is incomplete
  std::uint32_t version;
  std::uint32_t size;
  std::int64_t pid;
  char program[48];
  std::atomic<std::uint32_t> device_count;
  std::atomic<std::uint32_t> lost_records;  // log records lost for lack of disk space or memory; saturates
  std::atomic<std::uint64_t> failed_frees;
  std::atomic<std::uint64_t> null_frees;
  std::atomic<std::uint64_t> failed_allocs;   // failed in the driver for a reason other than lack of memory
  std::atomic<std::uint64_t> refused_shares;  // refused requests for a sharing handle; not counted in `denied`
  std::atomic<std::uint64_t> host_bytes;      // pinned
  std::atomic<std::uint64_t> host_peak_bytes;
  DeviceTally devices[kMaxTalliedDevices];
  // The number of driver functions that the program asked for, that Ration does not know, and that may take memory.
  std::atomic<std::uint64_t> unknown_of_memory;
  std::atomic<std::uint32_t> unknown_kept;    // attempts to claim an entry of `unknown`, including failed ones
  std::atomic<std::uint32_t> unknown_is_cut;  // 1: names asked for later are not counted
  struct Name {
    std::atomic<std::uint32_t> is_written;
    char text[108];
  } unknown[kMostUnknown];
  std::atomic<std::uint64_t> log_bytes;  // length of `log`, written after `log`; 0: no log
  char log[4096];                        // the path, absolute
  // For each device: the largest refused request. The process may die while it writes an entry, so there are two
  // entries, and the other one stays valid.
  struct Refused {
    std::atomic<std::uint32_t> current;  // number of the valid entry, from 1; 0: none
    struct Request {
      std::uint64_t bytes;
      std::uint64_t lacking;       // with this many more bytes, the request would have succeeded; 0: unknown
      std::uint64_t least;         // at least so many are lacking; 0: unknown
      std::uint64_t largest_free;  // UINT64_MAX: unknown
    } of[2];
  } refused[kMaxTalliedDevices];
  // The processes that held the memory when a group or a full device first refused a request.
  struct Holders {
    std::atomic<std::uint32_t> is_taken;  // set by the thread that writes this struct
    std::atomic<std::uint32_t> count;     // written after the entries
    std::uint64_t more;                   // holders without an entry
    struct Holder {
      std::uint64_t reserved, guarantee;
      std::int32_t pid;
      char program[108];  // the end of the program's path
    } of[kMostHolders];
  } holders[kMaxTalliedDevices];
  // The groups that the process is in, and their figures as the process saw them. `kind` is a ledger::GroupKind.
  struct Group {
    std::atomic<std::uint32_t> is_written;
    std::uint32_t kind;
    std::uint64_t random;  // differs from that of other groups with this name
    char name[72];
  } groups[kMostGroups];
  GroupFigures group_figures[kMaxTalliedDevices][kMostGroups];
  std::atomic<std::uint32_t> limit_is_later[kMaxTalliedDevices];  // 1: the limit was set while the process ran
  std::atomic<std::uint64_t> preallocated[kMaxTalliedDevices];    // total bytes that pools have preallocated
  char uuids[kMaxTalliedDevices][48];     // the devices' UUIDs as the driver prints them; written before device_count
  std::atomic<std::uint32_t> lost_error;  // the errno of the failure that lost the latest of `lost_records`
  std::atomic<std::uint64_t> managed_bytes, managed_peak_bytes;  // managed memory that is counted, but not limited
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
    std::uint64_t most_claimed;  // the largest sum of all members' claims
    std::uint64_t random = 0;    // differs from that of earlier groups with the same name
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
    SummaryPage::Refused::Request largest_refused;  // `bytes` is 0 if none was refused
    bool limit_is_later;                            // the limit was set after the process started
    std::string uuid;
    std::vector<Group> groups;
    std::vector<Holder> holders;  // the processes that held most of the memory which the first refused request lacked
    std::uint64_t more_holders = 0;
  };
  std::int64_t pid = 0;
  std::string program;
  std::uint64_t failed_frees = 0, null_frees = 0, failed_allocs = 0, refused_shares = 0, lost_records = 0;
  int lost_error = 0;  // the errno of the failure that lost the latest record
  std::uint64_t host_bytes = 0, host_peak_bytes = 0, managed_bytes = 0, managed_peak_bytes = 0;
  std::vector<Device> devices;          // by ordinal; an unused device has a total of 0
  std::uint64_t unknown_of_memory = 0;  // as in the page
  bool unknown_is_cut = false;          // there may be more functions than were counted
  std::vector<std::string> unknown;     // the first of these functions
  std::string log;                      // the path of the log; empty: none
};

// Creates and maps the file `directory`/`pid` (mode 0600). If the file exists, it belongs to another program that ran
// under this process ID, or runs under it in another namespace; then uses `pid`.2 and so on. Uses private memory if
// this fails or `directory` is empty. The page is never unmapped. Returns nullptr only if no memory can be mapped.
SummaryPage *create_summary_page(const std::string &directory, std::int64_t pid, const std::string &program);

// Writes the name of one of the process's groups. REQUIRES: number < kMostGroups.
void publish_group(SummaryPage &page, unsigned number, std::uint32_t kind, const std::string &name,
                   std::uint64_t random);

// Writes the holders of the memory that a request on the device lacked. Only the first call for a device has an effect.
void publish_holders(SummaryPage &page, int device, const std::vector<Holder> &holders, std::uint64_t more);

// Writes the request if it is larger than all requests refused before. REQUIRES: one thread at a time.
void publish_refusal(SummaryPage &page, int device, const SummaryPage::Refused::Request &request);

// Writes the path of the process's log.
void publish_log(SummaryPage &page, const std::string &path);

// Reads a page from a file. Returns false if it is not a page of this version.
bool read_summary(const std::string &file, Summary &summary);

}  // namespace ration::events
