#include "policy/block_pool/part_server.h"

#include <unistd.h>

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "base/fork_exclusion.h"
#include "base/open_beyond_streams.h"
#include "base/own_thread.h"
#include "base/wait.h"
#include "policy/block_pool/context_pool.h"
#include "policy/block_pool/ipc_exporter.h"
#include "policy/contexts/captures.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr std::uint64_t kLastRequestNs = 200'000'000;

bool export_handle(std::uint64_t handle, int &file) {
  return real.cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS;
}

}  // namespace

bool PartServer::start(const std::string &state_folder, std::uint64_t exporter, std::string &problem) {
  if (running_.load()) {
    return true;
  }
  const ReentrantGate gate(gate_);
  if (running_.load()) {
    return true;
  }
  if (stopped_.load()) {
    problem = "the process ends";
    return false;
  }
  if (!ledger::PartSocket::open(state_folder, exporter, problem)) {
    return false;
  }
  state_folder_ = state_folder;
  exporter_ = exporter;
  running_.store(true);
  if (start_own_thread(run, this)) {
    return true;
  }
  running_.store(false);
  ledger::PartSocket::remove(state_folder_, exporter_);
  problem = "the thread that serves other processes cannot be created";
  return false;
}

void *PartServer::run(void *server) noexcept {
  const OwnThread self("ration-ipc");
  static_cast<PartServer *>(server)->serve();
  return nullptr;
}

void PartServer::serve() noexcept try {
  using Received = ledger::PartSocket::Received;
  std::string problem;
  while (!stopped_.load()) {
    ledger::PartRequest request;
    switch (ledger::PartSocket::receive(request)) {
      case Received::nothing:
        if (OwnThread::is_main_thread_gone()) {
          ledger::PartSocket::remove(state_folder_, exporter_);
          running_.store(false);
          return;
        }
        break;
      case Received::closed:
        if (!stopped_.load() && !ledger::PartSocket::open(state_folder_, exporter_, problem)) {
          running_.store(false);  // the next share tries again, and says why
          return;
        }
        break;
      case Received::request:
        answer(request);
        ledger::PartSocket::hang_up();
        break;
    }
  }
  running_.store(false);
  wake_waiters();
} catch (...) {  // no memory of the host
  running_.store(false);
  wake_waiters();
}

// Excludes fork(): a forked child would inherit the descriptors.
void PartServer::answer(const ledger::PartRequest &request) noexcept try {
  const ForkExclusion exclusion;
  ledger::PartReply reply;
  Files files;
  reply.state = export_parts(request, reply, files);
  if (!ledger::PartSocket::answer(reply, files.numbers.data())) {
    reply = {};
    reply.state = ledger::PartsState::refused;
    (void)ledger::PartSocket::answer(reply, nullptr);
  }
  for (std::uint32_t i = 0; i < files.count; ++i) {
    close(files.numbers[i]);
  }
} catch (...) {  // no memory of the host, and nothing exported: the opener asks again
}

// The end of a context waits for calls in flight, and a later call sees that the context has ended. Neither the context
// nor the block waits for the answer to be sent: an opener that is still there keeps the block by its lease.
ledger::PartsState PartServer::export_parts(const ledger::PartRequest &request, ledger::PartReply &reply,
                                            Files &files) {
  const IpcExporter::Exporting exporting(exports_, request.token, request.first);
  if (!exporting) {
    return ledger::PartsState::no_block;
  }
  const ContextPool::InFlight in_flight(*existing_pool(exporting.owner()));
  if (exporting.owner().ended_by.load() != nullptr) {
    return ledger::PartsState::no_block;
  }
  const RelaxedCapture relaxed;
  const HeldStreams held;
  for (const IpcExporter::Part &part : exporting.parts()) {
    if (stopped_.load() || !export_handle(part.handle, files.numbers[files.count])) {
      break;
    }
    reply.bytes[files.count++] = part.bytes;
  }
  reply.count = files.count;
  reply.total = exporting.total();
  return reply.count != 0 ? ledger::PartsState::sent : ledger::PartsState::refused;
}

void PartServer::stop() noexcept try {
  if (stopped_.exchange(true) || !running_.load()) {
    return;
  }
  ledger::PartSocket::shut();
  const std::uint64_t deadline = now_ns() + kLastRequestNs;
  for (Waiter waiter; running_.load() && now_ns() < deadline; waiter.pause()) {
  }
  ledger::PartSocket::remove(state_folder_, exporter_);
} catch (...) {  // no memory of the host: the socket stays until `ration ps`
}

void PartServer::end_thread() noexcept {
  stop();
  if (!running_.load()) {
    stopped_.store(false);
  }
}

}  // namespace ration::policy
