// What the records of a log add up to: what was held, when it was most, who held it, and what is left.
// Layer: logs. Threads: none of its own.
//
// Blocks are grouped by what asked for them: by its stack where the log has stacks, else by the driver function that it
// called. Groups are counted as records come; those at the peak are copied when the first block is freed after it.
#pragma once

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
#include "logs/history/granule_use.h"
#include "logs/history/growth.h"
#include "logs/history/live_blocks.h"
#include "logs/reader/record.h"
#include "logs/stacks/stack_table.h"

namespace ration::logs {

// "64 KiB to 128 KiB": the sizes that are told together.
std::string size_class(std::uint64_t bytes);

class History {
 public:
  // What blocks are grouped by. caller_in_file: as caller, without lines, for comparisons of two programs.
  // call: the driver function that was called, with stacks too.
  enum class By { caller, caller_in_file, library, thread, size, call };
  // As the title of a column: "CALLER".
  static const char *title_of(By by);

  struct Group {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
    std::uint64_t oldest_ns = 0;  // age of its oldest block; of what is left at the end
  };
  using Groups = std::map<std::string, Group>;

  using NamedGroup = std::pair<std::string, Group>;
  // Those that have blocks, the one with most bytes first.
  static std::vector<NamedGroup> largest_first(const Groups &groups);

  // Of one group: at the device's peak, requested in all, and not freed.
  struct Figures {
    Group peak, total, left;
  };

  struct Moment {
    std::uint64_t bytes = 0;
    std::uint64_t seq = 0;  // 0: there was none
    std::uint64_t ts_ns = 0;
  };
  // The group that refused, and those that claim most of it, or of the device that was full.
  struct RefusedBy {
    std::string group;  // empty: none
    std::uint64_t limit = 0, claimed = 0;
    struct Holder {
      std::string program;
      std::uint64_t pid = 0, reserved = 0, guarantee = 0;
    };
    std::vector<Holder> holders;
    std::uint64_t outside = 0;  // of a device that was full, in use beyond them: by the driver, or outside Ration
  };
  // The limit that a request needs: it is enough, or may be, or is the least that can be.
  struct Need {
    enum class Sure { least, maybe, enough };
    std::uint64_t bytes = 0;
    Sure sure = Sure::least;
  };
  struct Refusal {
    std::string api, reason;
    std::string mode, backing;  // of the device
    std::uint64_t total = 0;    // of the device
    std::uint64_t count = 0;
    Moment first;    // bytes: requested
    Moment largest;  // request; and of that one:
    std::uint64_t used = 0, limit = 0, largest_free = 0;
    std::optional<std::uint64_t> device_free;  // nullopt: the driver could not be asked
    Need need;
    std::uint64_t stack = 0;       // 0: unknown
    std::vector<NamedGroup> held;  // then, by those who held most
    Group held_by_others;          // count: of groups
    RefusedBy by;
    // By how much the request was larger than what could be had at once; 0: unknown.
    std::uint64_t missing() const { return minus_or_zero(largest.bytes, largest_free); }
  };
  struct Growing {
    std::string name;  // of the group
    Rise rise;
    std::uint64_t oldest_ns = 0;  // how long one of its blocks lived at most
  };
  struct Device {
    std::string name;
    std::uint64_t total = 0, limit = 0;
    bool limit_asked = false;
    std::uint64_t later_limit = 0;     // as the latest refusal found it, where `ration set` had changed it; 0: unknown
    std::uint64_t group_limit = 0;     // of all members together; 0: none
    std::uint64_t live_bytes = 0;      // of charged blocks
    std::string mode, backing;         // of its pools: vmm or slab; empty: none, or the log does not say
    GranuleUse granules;               // of a pool with granules
    std::uint64_t driver_blocks = 0;   // charged, and of no pool
    std::uint64_t driver_pools = 0;    // what these reserve
    std::uint64_t reserved_bytes = 0;  // slabs, blocks of the driver's, and what its pools keep
    Moment peak, reserved_peak;
    std::uint64_t allocs = 0, frees = 0;
    std::uint64_t unseen = 0;  // blocks that were never freed, of records that the log lacks
    std::uint64_t live_count() const { return allocs - frees + unseen; }
    std::uint64_t refusal_count() const;
    // Of each group, by name.
    std::vector<std::pair<std::string, Figures>> figures() const;
    std::uint64_t waits = 0, waited_ns = 0;
    Groups live, at_peak, in_all;
    std::map<std::uint64_t, Group> live_stacks;  // of blocks whose stack the log has
    Groups live_others;                          // of the other blocks
    struct Host {                                // pinned memory, which no figure of the device has
      std::uint64_t bytes = 0, count = 0;
      Groups live;
      std::map<std::uint64_t, Group> live_stacks;
      Groups live_others;
    };
    Host host;
    std::vector<Refusal> refusals;  // each function and reason once
    std::vector<Growing> growing;   // groups that grow, the one that rises most first
    Work work;                      // of charged blocks
    // The most of free memory that was in pieces too small for a request that all of it would have served: of all
    // refusals, in parts of a million.
    std::uint64_t fragmentation_ppm = 0;
  };

  explicit History(By by) : by_(by) {}

  void add(const Record &record);
  // The log ends in the middle of a record.
  void note_cut_off() { cut_off_ = true; }
  // After the last one.
  void finish();

  By by() const { return by_; }

  const std::vector<Device> &devices() const { return devices_; }
  // All of the log's devices, that of the larger peak first. Sums are of charged blocks.
  std::uint64_t allocs() const { return sum(&Device::allocs); }
  std::uint64_t frees() const { return sum(&Device::frees); }
  std::uint64_t refusals() const { return sum(&Device::refusal_count); }
  struct Growth {
    Levels levels;
    std::uint64_t oldest_ns = 0;  // of blocks that were freed
  };
  // What the last record ended and began.
  struct Places {
    Group *in_all = nullptr, *live = nullptr, *place = nullptr;  // the last: in live_stacks or live_others
    Growth *growth = nullptr;                                    // of the group
  };
  struct Held : Places {
    bool is_host = false;
    bool is_own = false;       // the driver's: moves the reserved bytes
    bool in_granules = false;  // of a pool
  };
  const LiveBlocks<Held> &blocks() const { return blocks_; }
  // Who allocated, as the log has it.
  StackTable &stacks() const { return stacks_; }
  // The device with the highest peak; nullptr: no device.
  const Device *busiest() const;

  // Of the first and last line.
  const std::string &program() const { return program_; }
  std::uint64_t pid() const { return pid_; }
  bool has_ended() const { return ended_; }
  // Whether a block has one.
  bool has_stacks() const { return has_stacks_; }
  bool was_cut_off() const { return cut_off_; }
  // It ended by itself, and not because memory was refused: what is left was forgotten.
  bool has_ended_cleanly() const { return ended_ && !is_refused_last_; }
  // False: records are known to be missing, of which only the `end` has the peaks, or the log ends before the first.
  bool knows_peak() const;
  // Else a program that was killed, or still runs, may have held more than its records have.
  bool has_exact_peak() const { return ended_ && knows_peak(); }
  // Where groups should be callers and are not, because the log has no stacks.
  bool lacks_callers() const;
  // Of the driver functions that the program asked for.
  struct Asked {
    std::uint64_t unknown_names = 0;     // functions that the driver has and Ration does not know
    std::vector<std::string> unknown;    // the first of them
    std::uint64_t unknown_versions = 0;  // requests for a function that Ration knows, in a version that it does not
    std::vector<std::string> newer;      // the first of them, as NAME@VERSION
  };
  const Asked &asked() const { return asked_; }
  std::uint64_t driver_version() const { return driver_version_; }  // as cuDriverGetVersion returns it; 0: unknown
  const std::string &ration_version() const { return ration_version_; }
  std::uint64_t last_ts_ns() const { return last_ts_ns_; }
  std::uint64_t failed_allocs() const { return failed_allocs_; }
  std::uint64_t failed_frees() const { return failed_frees_; }
  // Records that are missing; of them, those in earlier parts of the log. Peaks, and what was not freed, are then as
  // the end of the log has them.
  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t left_out() const { return left_out_; }

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
  mutable StackTable stacks_;  // resolves when it is asked
  std::unordered_map<std::uint64_t, std::string> callers_;
  std::vector<Device> devices_;
  std::vector<bool> is_at_peak_;  // by device: the groups at its peak are those that live
  LiveBlocks<Held> blocks_;
  std::unordered_map<const Group *, Growth> growth_;  // of live groups
  std::unordered_map<std::uint64_t, Places> places_;  // by stack and device, so that names are not compared for each
  std::string program_, ration_version_;
  Asked asked_;
  std::uint64_t driver_version_ = 0;
  std::uint64_t pid_ = 0, last_ts_ns_ = 0, failed_allocs_ = 0, failed_frees_ = 0, dropped_ = 0;
  struct Totals {  // of one device, as the end has them
    std::uint64_t peak = 0, reserved_peak = 0, live_count = 0, live_bytes = 0;
  };
  void take_totals(const Record &record);
  void fill_in(Device &device, const Totals &totals);

  bool ended_ = false, cut_off_ = false, has_stacks_ = false;
  bool is_refused_last_ = false;  // no allocation came after the last refusal
  std::uint64_t left_out_ = 0;    // of dropped_: in parts that are gone
  std::vector<Totals> totals_;
};

// The grouping that a user named; otherwise one sentence with what is wrong.
std::variant<History::By, std::string> read_grouping(const std::string &name);

}  // namespace ration::logs
