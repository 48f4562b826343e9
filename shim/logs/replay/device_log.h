// Converts a log to the input of a replay, which is, for each device, the requests to its pools and the memory used
// outside pools.
// Layer: logs. Threads: none of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/values/limit_map.h"
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
    std::string uuid;
    std::uint64_t total = 0, limit = 0;
    std::string backing;            // the backing of the device's pools; empty: the log does not say
    bool backing_is_asked = false;  // a setting chose the backing, so it does not depend on the limit
    pool::replay::DeviceTrace trace;
    std::vector<Pool> pools;
    std::vector<std::string> apis;  // by step: the driver function that was called
    std::uint64_t live_blocks = 0, peak_live_blocks = 0;
    std::uint64_t refusals = 0;  // refused requests, after which the program went on
    // The device has stream-ordered memory. The bytes that the driver's pools held for it in the logged run are
    // enough. The pools may need less than that, but not less than the sum of the blocks.
    bool is_stream_ordered = false;
    std::uint64_t peak_reserved = 0;
    std::uint64_t peak_bytes = 0;  // the program's peak, of charged bytes, as in History
    std::uint64_t end_peak = 0;    // from the `end` record, which also covers missing records
    // The following members are used while the log is read:
    std::uint64_t requested = 0, other = 0;  // current values
    std::uint64_t live_bytes = 0;            // charged bytes of all blocks
    std::uint64_t other_blocks = 0;          // bytes of blocks that are in neither kind of pool
    std::uint64_t ordered_blocks = 0;        // bytes of blocks in the driver's pools
    std::uint64_t reserved = 0;              // bytes that the driver's pools hold, including those for graphs

    // The backing of a pool under this limit. Slabs are used if whole pages would leave much of the limit unused.
    pool::replay::Backing backing_under(std::uint64_t limit) const;
  };

  // How stream-ordered memory is counted: by the bytes that the driver's pools held for it, or by its blocks' bytes.
  enum class Counts { reserved, blocks };
  explicit DeviceLog(Counts counts) : counts_(counts) {}

  void add(const Record &record);

  const std::vector<Device> &devices() const { return devices_; }
  config::DeviceIdentity identity(std::size_t device) const {
    return {static_cast<int>(device), devices_[device].uuid, devices_[device].total};
  }
  const std::string &program() const { return program_; }
  std::uint64_t pid() const { return pid_; }
  std::uint64_t dropped() const { return dropped_; }
  bool has_ended() const { return has_ended_; }
  // False if records are missing, because the missing requests may have needed more memory.
  bool is_whole() const { return has_ended_ && dropped_ == 0; }

 private:
  struct Counted {
    std::uint64_t bytes = 0;            // 0: the block does not count
    std::optional<std::uint32_t> pool;  // nullopt: the block is in none of Ration's pools
    bool is_ordered = false;            // the block is in one of the driver's pools
    std::uint32_t id = 0;
  };
  using Block = LiveBlocks<Counted>::Block;
  Device &device(const Record &record);
  void begin(Block &block, const Record &record);
  void end(const Block &block, const Record &record);
  void sample(const Record &record);
  void describe(const Record &meta);
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
