// Adds up the records of a log: how much memory was held, when and by whom the most was held, what was never freed.
// Layer: logs. Threads: none of its own.
//
// Blocks are grouped by origin: by stack if the log has stacks, else by the driver function that was called. Groups are
// updated with each record. The groups at the peak are copied when the first block after the peak is freed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/saturating.h"
#include "config/values/limit_map.h"
#include "logs/history/granule_use.h"
#include "logs/history/growth.h"
#include "logs/history/live_blocks.h"
#include "logs/reader/record.h"
#include "logs/stacks/stack_table.h"

namespace ration::logs {

// "64 KiB to 128 KiB": the name of a range of sizes that is reported as one group.
std::string size_class(std::uint64_t bytes);

class History {
 public:
  // The property by which blocks are grouped. caller_in_file is like caller but without line numbers, to compare two
  // programs. call is the driver function that was called, even if there are stacks.
  enum class By { caller, caller_in_file, library, thread, size, call };
  // The title of the column for that property, such as "CALLER".
  static const char *title_of(By by);

  struct Group {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
    std::uint64_t oldest_ns = 0;  // the age, at the end, of the oldest block that was never freed
  };
  using Groups = std::map<std::string, Group>;

  using NamedGroup = std::pair<std::string, Group>;
  // The groups that have blocks, the largest first.
  static std::vector<NamedGroup> largest_first(const Groups &groups);

  // The figures of one group: at the device's peak, in total, and for blocks that were never freed.
  struct Figures {
    Group peak, total, left;
  };

  struct Moment {
    std::uint64_t bytes = 0;
    std::uint64_t seq = 0;  // 0: there was no such moment
    std::uint64_t ts_ns = 0;
  };
  // The group whose limit was reached and the members that claim most of it, or the main holders of a full device.
  struct RefusedBy {
    std::string group;  // empty: no group's limit was reached
    std::uint64_t limit = 0, claimed = 0;
    struct Holder {
      std::string program;
      std::uint64_t pid = 0, reserved = 0, guarantee = 0;
    };
    std::vector<Holder> holders;
    std::uint64_t more_holders = 0;  // those not among `holders`
    std::uint64_t outside = 0;       // for a full device: memory in use by the driver or by processes outside Ration
  };
  // The limit that a request needs. `enough`: this limit suffices; `maybe`: it may suffice; `least`: a smaller limit
  // cannot suffice. 0 bytes: nothing is known.
  struct Need {
    enum class Sure { least, maybe, enough };
    std::uint64_t bytes = 0;
    Sure sure = Sure::least;
  };
  struct Refusal {
    std::string api, reason;
    std::string mode, backing;  // the device's mode and backing
    std::uint64_t total = 0;    // the device's memory
    std::uint64_t count = 0;
    Moment first;    // the first refusal; `bytes`: the size requested
    Moment largest;  // the largest refused request; all members below are from its record
    std::uint64_t used = 0, limit = 0, largest_free = 0;
    std::optional<std::uint64_t> device_free;  // nullopt: the driver could not be asked
    Need need;
    std::uint64_t lacking = 0;     // the number of bytes that this request lacked; 0: unknown
    std::uint64_t stack = 0;       // the stack of the largest request; 0: unknown
    std::vector<NamedGroup> held;  // memory held at that time by the groups that held the most
    Group held_by_others;          // `count`: the number of the other groups
    RefusedBy by;
  };
  struct Growing {
    std::string name;  // name of the group
    Rise rise;
    std::uint64_t oldest_ns = 0;  // the longest lifetime of any of its blocks
    bool may_be_loading = false;  // so little was freed that loading and working cannot be told apart
  };
  struct Device {
    std::string name, uuid;
    std::uint64_t total = 0, limit = 0;
    bool limit_asked = false;
    std::uint64_t later_limit = 0;     // the limit at the latest refusal, if `ration set` had changed it; 0: unknown
    std::uint64_t group_limit = 0;     // the limit of all members together; 0: none
    std::uint64_t live_bytes = 0;      // charged blocks only
    std::string mode, backing;         // of the device's pools: vmm or slab; empty: none, or the log does not say
    GranuleUse granules;               // for pools with granules
    std::uint64_t driver_blocks = 0;   // charged bytes that no pool serves
    std::uint64_t driver_pools = 0;    // bytes that the driver's pools reserve
    std::uint64_t reserved_bytes = 0;  // slabs, blocks from the driver, and the driver's pools
    Moment peak, reserved_peak;
    std::uint64_t allocs = 0, frees = 0;
    std::uint64_t unseen = 0;     // blocks live at the end that have no record in the log
    bool has_all_counts = false;  // false: there may be more allocations and frees
    std::uint64_t live_count() const { return allocs - frees + unseen; }
    std::uint64_t refusal_count() const;
    // The name and the figures of each group.
    std::vector<std::pair<std::string, Figures>> figures() const;
    std::uint64_t waits = 0, waited_ns = 0;
    Groups live, at_peak, in_all;
    std::map<std::uint64_t, Group> live_stacks;  // blocks whose stack the log has
    Groups live_others;                          // the other blocks
    struct Host {                                // pinned memory, which is not part of any figure of the device
      std::uint64_t bytes = 0, count = 0;
      Groups live;
      std::map<std::uint64_t, Group> live_stacks;
      Groups live_others;
    };
    Host host;
    std::vector<Refusal> refusals;  // one for each function and reason
    std::vector<Growing> growing;   // groups that grow, the one that rises most first
    Work work;                      // of charged blocks
    // For each request that was refused although the free memory was large enough in total: the share of free memory,
    // in millionths, outside the largest free piece. The largest of these shares.
    std::uint64_t fragmentation_ppm = 0;
  };

  explicit History(By by) : by_(by) {}

  void add(const Record &record);
  // Notes that the log ends in the middle of a record.
  void note_cut_off() { cut_off_ = true; }
  // Call this after the last record.
  void finish();

  By by() const { return by_; }

  const std::vector<Device> &devices() const { return devices_; }
  config::DeviceIdentity identity(std::size_t device) const {
    return {static_cast<int>(device), devices_[device].uuid, devices_[device].total};
  }
  // Sums over all devices of the log, for charged blocks only. If the `end` record counts more, its count is returned,
  // because records are missing.
  std::uint64_t allocs() const { return std::max(sum(&Device::allocs), of_end_.allocs); }
  std::uint64_t frees() const { return std::max(sum(&Device::frees), of_end_.frees); }
  std::uint64_t refusals() const { return sum(&Device::refusal_count) + unseen_refusals_; }
  struct Growth {
    Levels levels;
    std::uint64_t oldest_ns = 0;  // the longest lifetime of a freed block
  };
  // The places where a block is counted.
  struct Places {
    Group *in_all = nullptr, *live = nullptr, *place = nullptr;  // `place`: the entry in live_stacks or live_others
    Growth *growth = nullptr;                                    // the growth of the group
  };
  struct Held : Places {
    bool is_host = false;
    bool is_own = false;       // the driver's own memory, which counts in the reserved bytes
    bool in_granules = false;  // the block belongs to a pool with granules
  };
  const LiveBlocks<Held> &blocks() const { return blocks_; }
  // The stacks of the log, which show who allocated memory.
  StackTable &stacks() const { return stacks_; }
  // The device with the highest peak; nullptr: there is no device.
  const Device *busiest() const;

  // These facts come from the log's first and last records.
  const std::string &program() const { return program_; }
  std::uint64_t pid() const { return pid_; }
  bool has_ended() const { return ended_; }
  // True if any block has a stack.
  bool has_stacks() const { return has_stacks_; }
  bool was_cut_off() const { return cut_off_; }
  // If false, the program may have done more than the log records, so counts are lower bounds.
  bool is_whole() const { return ended_ && dropped_ == 0; }
  // True if the program ended by itself and its last request was not refused, so that it forgot to free the blocks
  // left. False if records of refusals are missing, because any of them may concern the last request.
  bool has_ended_cleanly() const { return ended_ && !is_refused_last_ && unseen_refusals_ == 0; }
  // False if the peak is unknown, because records are missing and no `end` has the peaks, or because the log ends
  // before its first peak.
  bool knows_peak() const;
  // If false, a program that was killed or is still running may have held more than its records show.
  bool has_exact_peak() const { return ended_ && knows_peak(); }
  // True if groups should be callers but are not, because the log has no stacks.
  bool lacks_callers() const;
  // The driver functions that the program looked up.
  struct Asked {
    std::uint64_t unknown_names = 0;     // functions that the driver has but Ration does not know
    std::vector<std::string> unknown;    // the first of these functions
    std::uint64_t unknown_versions = 0;  // look-ups of a known function in a version that Ration does not know
    std::vector<std::string> newer;      // the first of these versions, as NAME@VERSION
  };
  const Asked &asked() const { return asked_; }
  std::uint64_t driver_version() const { return driver_version_; }  // as cuDriverGetVersion returns it; 0: unknown
  const std::string &ration_version() const { return ration_version_; }
  std::uint64_t last_ts_ns() const { return last_ts_ns_; }
  std::uint64_t failed_allocs() const { return failed_allocs_; }
  std::uint64_t failed_frees() const { return failed_frees_; }
  // The number of missing records. left_out() counts those that were in earlier parts of the log. If any are missing,
  // the peaks and the totals of blocks never freed come from the `end` record.
  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t left_out() const { return left_out_; }
  // The number of refusals among the missing records, as far as the `end` record shows it.
  std::uint64_t unseen_refusals() const { return unseen_refusals_; }

 private:
  template <typename Figure>
  std::uint64_t sum(Figure figure) const {
    return std::transform_reduce(devices_.begin(), devices_.end(), std::uint64_t{0}, std::plus<>(),
                                 [figure](const Device &each) { return std::invoke(figure, each); });
  }

  using Block = LiveBlocks<Held>::Block;
  Device &device(std::size_t ordinal);
  std::string group_of(const Record &record);
  void begin(Block &block, const Record &record);
  void end(const Block &block);
  void oom(const Record &record);
  void reserve(Device &device, std::uint64_t bytes, const Record &record);
  static void release(Device &device, std::uint64_t bytes);
  void keep_peak(Device &device);
  Places places_of(Device &device, const Block &block, bool is_host, const Record &record);
  void find_growth(Device &device);

  const By by_;
  mutable StackTable stacks_;  // resolves frames on request
  std::unordered_map<std::uint64_t, std::string> callers_;
  std::vector<Device> devices_;
  std::vector<bool> is_at_peak_;  // by device: the groups at the peak are still the live groups
  LiveBlocks<Held> blocks_;
  std::unordered_map<const Group *, Growth> growth_;  // by live group
  std::unordered_map<std::uint64_t, Places> places_;  // by stack and device, to avoid comparing names for every record
  std::string program_, ration_version_;
  Asked asked_;
  std::uint64_t driver_version_ = 0;
  std::uint64_t pid_ = 0, last_ts_ns_ = 0, failed_allocs_ = 0, failed_frees_ = 0, dropped_ = 0;
  struct Totals {  // the totals of one device from the `end` record
    std::uint64_t peak = 0, reserved_peak = 0, live_count = 0, live_bytes = 0;
  };
  void take_totals(const Record &record);
  // Whether the free of a live block may be among the missing records.
  bool may_be_freed(const Block &block) const {
    return ended_ && of_end_.frees > seen_frees_ && block.is_charged && block.seq <= lost_until_;
  }
  static void fill_in(Device &device, const Totals &totals);
  void count_missing();
  // Figures of a device that are certain although records are missing. Sums over blocks may be too high after a loss,
  // because records of frees may be lost.
  struct Sure {
    std::uint64_t live = 0;  // bytes in blocks allocated after the latest loss
    Moment peak, reserved_peak;
  };
  void note_loss(std::uint64_t seq);
  // If records are missing, replaces the peaks by those of the `end` record, or by figures that are certain.
  void correct_peaks(std::size_t ordinal);

  bool ended_ = false, cut_off_ = false, has_stacks_ = false;
  bool is_refused_last_ = false;                  // there was no allocation after the last refusal
  std::uint64_t refused_last_ns_ = 0;             // the time of the first refusal after the last allocation
  std::string refused_last_;                      // the group of that refused request; empty: it has no stack
  std::uint64_t left_out_ = 0;                    // how many of dropped_ were in deleted parts of the log
  std::uint64_t ooms_ = 0, unseen_refusals_ = 0;  // ooms_: from the `end` record
  std::vector<Totals> totals_;
  struct Counts {
    std::uint64_t allocs = 0, frees = 0;
  };
  Counts of_end_;                 // of charged blocks, from the `end` record
  std::uint64_t seen_frees_ = 0;  // frees of charged blocks that have a record
  std::vector<Sure> sure_;        // by device, since the first loss
  std::uint64_t lost_at_ = 0;     // the number of the latest `dropped` record; 0: none
  std::uint64_t lost_until_ = 0;  // like lost_at_, but UINT64_MAX if records before the `end` are lost as well
};

// Returns the grouping that the user named, or one sentence with the error.
std::variant<History::By, std::string> read_grouping(const std::string &name);

}  // namespace ration::logs
