// Counts memory that the driver takes on its own account, for contexts, code and limits of kernels. It is measured
// around the calls that take it, counted by kind, and charged if the user asks for that (charge_context).
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
//
// A figure is what the driver reports minus what Ration has charged. If NVML lists this process, the figure is for the
// process. Otherwise the figure is for the device, and a change by another process during the call counts as ours, up
// to what the call can take. Measured calls that overlap share one baseline. Each call moves the baseline by the bytes
// that it found, so that nothing is counted twice.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/lock.h"
#include "ledger/ledger.h"
#include "policy/block_pool/room.h"
#include "policy/contexts/contexts.h"
#include "policy/devices/nvml_figures.h"
#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

// Design: design/charging.md#contexts-and-code
class Overhead {
 public:
  explicit Overhead(const CallParts &parts);

  // Each of these functions runs `call`, makes room for it if the device has none, and returns its answer. If our
  // measurement fails, the bytes stay uncounted.
  CUresult load_module(const char *api, CUmodule *module, DriverCall call);
  CUresult unload_module(CUmodule module, DriverCall call) { return unload(Part::module, module, call); }
  // For calls that may be a library's first use in the current context: that use creates the library's variables.
  CUresult use_library(const char *api, CUlibrary library, DriverCall call);
  CUresult use_kernel(const char *api, CUkernel kernel, DriverCall call);
  CUresult unload_library(CUlibrary library, DriverCall call) { return unload(Part::library, library, call); }
  CUresult set_limit(CUlimit limit, std::size_t value, DriverCall call);
  CUresult launch(const char *api, DriverCall call);

  // Runs `call`, which may create a context of the device. `note` is called after a success and returns the context.
  // `patience`: as in Room.
  CUresult make_context(const char *api, int device, Room::Patience patience, DriverCall call,
                        FunctionRef<ContextRef()> note);
  // Called when a context has ended, and with it all memory that was taken for it.
  void context_ended(const Context &context) noexcept;
  // If overhead is charged, counts the memory that launches have taken since the last measurement, by NVML's figure.
  void correct(int device) noexcept;

 private:
  // `bound`: the assumed size of a context that could not be measured. It is charged like a context, but not reported.
  enum class Part { context, bound, limit, module, library };
  struct Owner {
    int device;
    unsigned context;  // its number
    Part part;
    const void *handle;

    bool operator<(const Owner &other) const {
      return std::tie(device, context, part, handle) < std::tie(other.device, other.context, other.part, other.handle);
    }
  };
  // The sources of a figure for the bytes that Ration has not charged.
  enum Source { kProcess, kDriver, kMonitor, kSources };
  struct Reading {
    std::array<std::optional<std::int64_t>, kSources> beyond;
    bool named = false;  // NVML lists this process
  };
  // `most`: what the call can take; `gives`: it may also give memory back; `first`: no context existed to measure in.
  struct Measure {
    Owner owner;
    std::uint64_t most = UINT64_MAX;
    bool gives = false;
    bool first = false;
  };
  struct State {
    std::uint64_t sum() const;
    std::optional<std::int64_t> taken(const Measure &measure, const Reading &now);

    std::atomic<int> measuring{0};  // the number of calls
    std::optional<Reading> base;    // the baseline of those calls
    std::array<std::uint64_t, events::kOverheadKinds> bytes{};
    std::uint64_t bounds = 0;  // the part of `bytes` that is assumed for contexts
  };
  // A measured call.
  class Span {
   public:
    Span(Overhead &overhead, int device);
    ~Span();
    Span(const Span &) = delete;
    Span &operator=(const Span &) = delete;

   private:
    static void end(void *state) noexcept { static_cast<State *>(state)->measuring.fetch_sub(1); }
    State &state_;
  };
  CUresult measured(const char *api, int device, DriverCall call, FunctionRef<std::optional<Measure>()> made);
  std::optional<Reading> read(int device) noexcept;
  Reading beyond_books(int device, const ProcessFigure &figure, std::optional<std::uint64_t> used) REQUIRES(mutex_);
  void finish(const char *api, const Measure &measure) noexcept;
  void change(int device, Part part, std::int64_t bytes) REQUIRES(mutex_);
  void change(int device, events::OverheadKind kind, std::int64_t bytes) REQUIRES(mutex_);
  void charge_rest(int device, const Reading &now) REQUIRES(mutex_);
  CUresult unload(Part part, const void *handle, DriverCall call);
  using Entries = std::vector<std::pair<Owner, std::uint64_t>>;
  template <class Which>
  Entries take_out(const Which &which);
  void end(const Entries &entries);

  const CallParts &parts_;
  const bool measures_;  // false if no one would see the figures
  RankedMutex mutex_{Rank::kOverhead};
  State states_[ledger::kMaxDevices];  // mutex_ guards all members but `measuring`
  std::map<Owner, std::uint64_t> owners_ GUARDED_BY(mutex_);
};

}  // namespace ration::policy
