// A log as what a replay needs: for each device the requests to its pools, and what other memory takes beside them.
// Layer: logs. Threads: none of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "logs/history/live_blocks.h"
#include "logs/reader/record.h"
#include "logs/replay/device_replay.h"
#include "logs/replay/trace.h"

namespace ration::logs {

class DeviceLog {
 public:
  struct Pool {
    std::uint64_t context;
    pool::replay::TraceBuilder requests;
    std::uint64_t live_bytes = 0, peak_bytes = 0;
  };
  struct Device {
    std::uint64_t total = 0, limit = 0;
    std::string backing;  // of its pools; empty: the log does not say
    pool::replay::DeviceTrace trace;
    std::vector<Pool> pools;
    std::vector<std::string> apis;  // by step: the function that asked
    std::uint64_t live_blocks = 0, peak_live_blocks = 0;
    std::uint64_t refusals = 0;  // requests that the program did without
    // It has stream-ordered memory. What the driver's pools held for that in the run that the log is of is enough; they
    // may get by with less, down to the blocks.
    bool is_stream_ordered = false;
    std::uint64_t peak_reserved = 0;
    std::uint64_t peak_in_blocks = 0;
    // While it is read:
    std::uint64_t requested = 0, other = 0;  // now
    std::uint64_t other_blocks = 0;          // of neither kind of pool
    std::uint64_t ordered_blocks = 0;        // of the driver's pools
    std::uint64_t reserved = 0;              // what the driver's pools hold, for graphs too

    // The program's peak.
    std::uint64_t peak_used() const { return is_stream_ordered ? peak_in_blocks : trace.peak_bytes; }
    void note_peak() { peak_in_blocks = std::max(peak_in_blocks, requested + other_blocks + ordered_blocks); }
  };

  // What stream-ordered memory counts as: what the driver's pools held for it, or its blocks.
  enum class Counts { reserved, blocks };
  explicit DeviceLog(Counts counts) : counts_(counts) {}

  void add(const Record &record);

  const std::vector<Device> &devices() const { return devices_; }
  const std::string &program() const { return program_; }
  std::uint64_t pid() const { return pid_; }
  std::uint64_t dropped() const { return dropped_; }
  bool has_ended() const { return has_ended_; }

 private:
  struct Counted {
    std::uint64_t bytes = 0;            // 0: it does not count
    std::optional<std::uint32_t> pool;  // nothing: no pool of ours serves it
    bool is_ordered = false;            // a pool of the driver's does
    std::uint32_t id = 0;
  };
  using Block = LiveBlocks<Counted>::Block;
  Device &device(const Record &record);
  void begin(Block &block, const Record &record);
  void end(const Block &block, const Record &record);
  void sample(const Record &record);
  static std::uint32_t pool_of(Device &device, std::uint64_t context);
  static void add_step(Device &device, pool::replay::DeviceStep step, const Record &record);
  void set_other(Device &device, const Record &record);

  const Counts counts_;
  std::vector<Device> devices_;
  LiveBlocks<Counted> blocks_;
  std::string program_;
  bool has_ended_ = false;
  std::uint64_t pid_ = 0, dropped_ = 0;
};

}  // namespace ration::logs
