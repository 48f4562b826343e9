// Sends descriptors of granules to processes that open this process's shared blocks. It does so on a thread of its own,
// which starts when the first block in granules is shared.
// Layer: policy/block_pool. Threads: any may start and stop it; its own serves one request at a time, without a lock.
// Owns: the thread and its socket (ledger/part_socket.h); a forked child has neither.
// Design: design/granules.md#descriptors-for-openers
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/reentrant_gate.h"
#include "ledger/part_socket.h"

namespace ration::policy {

class IpcExporter;

class PartServer {
 public:
  explicit PartServer(IpcExporter &exports) : exports_(exports) {}
  ~PartServer() { stop(); }
  PartServer(const PartServer &) = delete;
  PartServer &operator=(const PartServer &) = delete;

  // Idempotent. If the parts cannot be served, returns false, and `problem` says why.
  bool start(const std::string &state_folder, std::uint64_t exporter, std::string &problem);
  // Stops for good. Returns once the thread makes no more driver calls, or after a time limit if that takes long.
  void stop() noexcept;
  // Like stop(), but start() can start the thread again.
  void end_thread() noexcept;

 private:
  static void *run(void *server) noexcept;
  void serve() noexcept;
  struct Files {
    std::array<int, ledger::kPartsAtOnce> numbers{};
    std::uint32_t count = 0;
  };
  void answer(const ledger::PartRequest &request) noexcept;
  ledger::PartsState export_parts(const ledger::PartRequest &request, ledger::PartReply &reply, Files &files);

  IpcExporter &exports_;
  std::string state_folder_;  // written before the thread starts
  std::uint64_t exporter_ = 0;
  ReentrantGate::Owner gate_{nullptr};
  std::atomic<bool> running_{false};
  std::atomic<bool> stopped_{false};
};

}  // namespace ration::policy
