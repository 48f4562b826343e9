// Mode async: synchronous allocations served from the driver's memory pools, and what their frees must wait for.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "policy/calls/admission.h"

namespace ration::policy {

class AsyncMemory {
 public:
  // `enabled`: mode async. `synchronous_free`: a free waits for the work before it.
  AsyncMemory(Devices &devices, ledger::Ledger &ledger, events::Journal &journal, Books &books, BlockPools &pools,
              StreamPools &stream_pools, AsyncPools &async, Admission &admission, bool enabled, bool synchronous_free)
      : devices_(devices),
        ledger_(ledger),
        journal_(journal),
        books_(books),
        pools_(pools),
        stream_pools_(stream_pools),
        async_(async),
        admission_(admission),
        enabled_(enabled),
        synchronous_free_(synchronous_free) {}

  bool enabled() const { return enabled_; }
  // The device's pool; nullptr: not mode async, or the device has none.
  StreamPools::PoolRef pool_on(int device) { return enabled_ ? async_.pool_on(device) : nullptr; }
  // From the pool, or by `act` where the pool would take more of the limit than is left for it.
  CUresult allocate(Request request, const Contexts::Current &where, const StreamPools::PoolRef &pool, Act act,
                    CUdeviceptr *address);

  // As BlockPools'.
  bool has_unsealed_frees() const { return enabled_ && async_.has_unsealed_frees(); }
  void seal_frees() noexcept {
    if (enabled_) {
      async_.seal_frees();
    }
  }

  bool owns(const Block &block) const { return async_.owns(block.pool); }
  // A block of ours that ends: the driver gets it once the device has finished the work before this free.
  CUresult defer(CUdeviceptr address, const Block &block);
  // The program has freed it in stream order.
  void freed_in_order(const Block &block) noexcept {
    if (owns(block)) {
      async_.freed_in_order(block.device, block.size);
    }
  }
  CUresult finish_free(const char *api, const Block &block);
  // Whether the address was freed already and is still a block to the driver; the answer to its next free.
  bool is_deferred(CUdeviceptr address) { return async_.covers(address); }
  CUresult refuse_deferred();
  // The live block of ours around an address, and where it begins.
  std::optional<Block> block_at(CUdeviceptr address, CUdeviceptr *base = nullptr);

 private:
  void preallocate(const Request &request, const Contexts::Current &where, const StreamPools::PoolRef &pool);
  // What one request asks of the device's pool.
  struct Ask {
    const Request &request;
    const Contexts::Current &where;
    const StreamPools::PoolRef &pool;
    std::uint64_t bytes;
    std::uint64_t bound;          // the most that the pool may grow by
    std::uint64_t idle;           // in the pool, before; of a large request
    bool large;                   // a part of a step that leaves a rest worth counting
    bool again;                   // the latest request that was not small was of this size
    std::uint64_t *reservations;  // counts those of this request
  };
  // Some of the limit, reserved for a call that needs less: whoever fails to reserve meanwhile waits for its end.
  class Reservation {
   public:
    Reservation(AsyncMemory &memory, const Ask &ask);
    ~Reservation();
    Reservation(const Reservation &) = delete;
    Reservation &operator=(const Reservation &) = delete;
    // nullopt: not so much is left.
    std::optional<StreamPools::Call> step(ledger::Effort effort);
    // All that its cap leaves the pool. nullopt: other memory is charged, so not so much is left.
    std::optional<StreamPools::Call> to_cap();
    void trim_by(std::uint64_t bytes);

   private:
    void hold();

    StreamPools &pools_;
    const Ask &ask_;
    ledger::Transit transit_;
    bool holds_ = false;
  };
  // How one attempt to take a block from the pool ended.
  enum class Taken {
    over,         // `result` is the answer
    no_room,      // the pool has no room for it
    crowded_out,  // not enough is left to try; other threads may have reserved it
  };
  // Before one of few blocks that fit: the chunks of a pool without a block become one where it then holds more.
  void merge_chunks(const Request &request, const Contexts::Current &where, const StreamPools::PoolRef &pool);
  void charge_missing(const char *api, StreamPools::Pool &pool);
  bool has_no_block(const StreamPools::Pool &pool, const ContextRef &context);
  // Makes the pool reserve so much. OUT_OF_MEMORY: also where the limit has not so much left.
  CUresult extend(const Contexts::Current &where, const StreamPools::PoolRef &pool, std::uint64_t bytes);
  bool loses_a_block(int device, std::uint64_t bytes, std::uint64_t bound);
  std::uint64_t splinters(const Ask &ask, std::uint64_t idle);
  void note_splinters(const Ask &ask);
  bool wastes_a_block(const Ask &ask, std::uint64_t available);
  bool strands_a_step(const Ask &ask, std::uint64_t available);
  // Whether the driver itself serves it better than its pool (decision 013).
  bool is_for_driver(const Ask &ask);
  bool could_serve_later(const Ask &ask);
  Taken take_and_enter(const Ask &ask, const StreamPools::Call &call, CUdeviceptr *address, CUresult &result);
  Taken enter(const Ask &ask, CUdeviceptr obtained, CUdeviceptr *address, CUresult &result);
  std::optional<Taken> take_to_cap(const Ask &ask, CUdeviceptr *address, CUresult &result);
  Taken take_near_limit(const Ask &ask, CUdeviceptr *address, CUresult &result);
  Taken take_once(const Ask &ask, CUdeviceptr *address, CUresult &result);
  bool take_in_turn(const Ask &ask, CUdeviceptr *address, CUresult &result);

  Devices &devices_;
  ledger::Ledger &ledger_;
  events::Journal &journal_;
  Books &books_;
  BlockPools &pools_;
  StreamPools &stream_pools_;
  AsyncPools &async_;
  Admission &admission_;
  const bool enabled_;
  const bool synchronous_free_;
  // A hint: figures of two requests may be mixed up.
  struct Splinters {
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> for_bytes{0};
  };
  Splinters splinters_[ledger::kMaxDevices];
  std::atomic<std::uint64_t> latest_[ledger::kMaxDevices] = {};  // bytes of the latest request that was not small
  std::atomic<std::uint64_t> merge_waited_ns_[ledger::kMaxDevices] = {};
  std::atomic<std::uint64_t> single_chunk_[ledger::kMaxDevices] = {};  // what a pool reserved when it had one
};

}  // namespace ration::policy
