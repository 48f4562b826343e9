#include "tests/simcuda/entry.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <thread>

#include "tests/simcuda/costs.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/include/simcuda/simcuda.h"
#include "tests/simcuda/settings.h"

namespace simcuda {
namespace {

constexpr unsigned kMostSymbols = 1024;
std::atomic<unsigned long long> counts[kMostSymbols];
std::atomic<int> watched{-1};
std::atomic<void (*)(void)> watcher{nullptr};

using Clock = std::chrono::steady_clock;
std::atomic<unsigned long long> spent_ns{0};

struct ThreadState {
  DefaultStream stream;
  unsigned device_side;
  const CallCost *cost;  // of the current call; null: none
  Clock::time_point begun;
  unsigned things;  // that it is about, and what they take
  double things_us;
  char note[121];
};
thread_local ThreadState thread_state{};

int index_of(const char *symbol) {
  const char *const *const end = kSymbols + kSymbolCount;
  const auto *const found =
      std::lower_bound(kSymbols, end, symbol, [](const char *a, const char *b) { return std::strcmp(a, b) < 0; });
  return found != end && std::strcmp(*found, symbol) == 0 ? static_cast<int>(found - kSymbols) : -1;
}

// Until the call has taken its cost. A sleep ends many microseconds late, so the last millisecond is spun.
void spend(const CallCost &cost) {
  const double us =
      cost.each ? cost.call_us * std::max(thread_state.things, 1u) : cost.call_us + thread_state.things_us;
  spent_ns.fetch_add(static_cast<unsigned long long>(us * 1000), std::memory_order_relaxed);  // no partner: statistics
  const auto end =
      thread_state.begun + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(us));
  std::this_thread::sleep_until(end - std::chrono::milliseconds(1));
  while (Clock::now() < end) {
  }
}

// Opened for each line: the program under test may close every descriptor that it did not open.
void trace(const std::string &path, const char *symbol, CUresult result) {
  char line[256];
  const int length = std::snprintf(line, sizeof line, "%s %d%s%s\n", symbol, static_cast<int>(result),
                                   thread_state.note[0] == '\0' ? "" : " ", thread_state.note);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (::write(file, line, static_cast<std::size_t>(length)) < 0) complain("simcuda: SIMCUDA_TRACE cannot be written");
  ::close(file);
}

}  // namespace

DefaultStream default_stream() {
  return thread_state.stream;
}

Admission admit(unsigned index, DefaultStream stream, Needs needs, CUresult *refusal) {
  const unsigned long long call = counts[index].fetch_add(1, std::memory_order_relaxed) + 1;  // no partner: statistics
  thread_state.stream = stream;
  thread_state.note[0] = '\0';
  if (watched.load() == static_cast<int>(index)) {
    watcher.load()();
  }
  thread_state.cost = cost_of(index);
  if (thread_state.cost != nullptr) {
    thread_state.begun = Clock::now();
    thread_state.things = 0;
    thread_state.things_us = 0;
  }
  for (const Fault &fault : settings().faults) {
    if (fault.call == call && fault.symbol == kSymbols[index]) {
      *refusal = static_cast<CUresult>(fault.code);
      return Admission::kFault;
    }
  }
  if (needs == Needs::kDriver && phase() != Phase::kReady) {
    *refusal = CUDA_ERROR_NOT_INITIALIZED;
    return Admission::kRefused;
  }
  if (thread_state.device_side != 0) {
    *refusal = CUDA_ERROR_NOT_PERMITTED;
    return Admission::kRefused;
  }
  return Admission::kGranted;
}

CUresult leave(unsigned index, CUresult result) {
  if (thread_state.cost != nullptr) spend(*thread_state.cost);
  if (const std::string &path = settings().trace; !path.empty()) trace(path, kSymbols[index], result);
  return result;
}

CUresult not_simulated(unsigned index) {
  counts[index].fetch_add(1, std::memory_order_relaxed);  // no partner: statistics
  complain(std::string("simcuda: ") + kSymbols[index] + " is not simulated");
  thread_state.note[0] = '\0';
  thread_state.cost = nullptr;
  return leave(index, CUDA_ERROR_NOT_SUPPORTED);
}

void about(std::uint64_t bytes) {
  if (thread_state.cost == nullptr) return;
  ++thread_state.things;
  thread_state.things_us += thread_state.cost->of(bytes);
}

void note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(thread_state.note, sizeof thread_state.note, format, arguments);
  va_end(arguments);
}

DeviceSide::DeviceSide() {
  ++thread_state.device_side;
}
DeviceSide::~DeviceSide() {
  --thread_state.device_side;
}

}  // namespace simcuda

unsigned long long simcuda_calls(const char *symbol) {
  const int index = symbol == nullptr ? -1 : simcuda::index_of(symbol);
  return index < 0 ? ~0ull : simcuda::counts[index].load(std::memory_order_relaxed);  // no partner: statistics
}

void simcuda_calls_reset(void) {
  for (auto &count : simcuda::counts) count.store(0, std::memory_order_relaxed);  // no partner: statistics
}

int simcuda_on_call(const char *symbol, void (*callback)(void)) {
  const int index = symbol == nullptr || callback == nullptr ? -1 : simcuda::index_of(symbol);
  simcuda::watched.store(-1);
  simcuda::watcher.store(callback);
  simcuda::watched.store(index);
  return symbol == nullptr || index >= 0 ? 0 : -1;
}

unsigned long long simcuda_costs_ns(void) {
  return simcuda::spent_ns.load(std::memory_order_relaxed);  // no partner: statistics
}

unsigned simcuda_exports(unsigned *implemented) {
  if (implemented != nullptr) *implemented = simcuda::kImplementedCount;
  return simcuda::kSymbolCount;
}
