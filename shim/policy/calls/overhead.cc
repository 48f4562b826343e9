#include "policy/calls/overhead.h"

#include <algorithm>
#include <numeric>

#include "base/wait.h"
#include "policy/calls/call_parts.h"
#include "policy/calls/room_for_driver.h"
#include "policy/contexts/any_context.h"
#include "policy/contexts/captures.h"

namespace ration::policy {
namespace {

using driver::real;
using events::OverheadKind;

// How often the figures are looked at again while another thread takes or frees memory: 1.5 ms in all.
constexpr int kLooks = 5;
// Without NVML's figure no context is believed to take more. An H100's takes 524 MiB.
constexpr std::uint64_t kMostOfContext = std::uint64_t{2} << 30;
// What a call of a known size may take beyond it, because the driver takes memory in blocks.
constexpr std::uint64_t kMostBeside = std::uint64_t{64} << 20;
// The kind of each Part.
constexpr OverheadKind kKinds[] = {OverheadKind::context, OverheadKind::context, OverheadKind::limit,
                                   OverheadKind::module, OverheadKind::module};

std::uint64_t attribute(int which, CUdevice device) {
  int value = 0;
  return real.cuDeviceGetAttribute.present() && real.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS &&
                 value > 0
             ? static_cast<std::uint64_t>(value)
             : 0;
}

// The most that a limit may take. A stack is taken for every thread that can be resident; UINT64_MAX if the driver does
// not say how many those are.
std::uint64_t most_of(CUlimit limit, std::size_t value, CUdevice device) {
  if (limit != CU_LIMIT_STACK_SIZE) {
    return value + kMostBeside;
  }
  constexpr int kMultiprocessors = 16;
  constexpr int kThreadsOfMultiprocessor = 39;
  const std::uint64_t threads = attribute(kMultiprocessors, device) * attribute(kThreadsOfMultiprocessor, device);
  const std::uint64_t padded = std::uint64_t{value} + 2048;  // the driver's own part of it
  return threads == 0 || padded > (UINT64_MAX - kMostBeside) / threads ? UINT64_MAX : padded * threads + kMostBeside;
}

// The current context, if there is one.
std::optional<Contexts::Current> current_in(const CallParts &parts) noexcept try {
  Contexts::Current here = parts.contexts.current();
  return here.error == CUDA_SUCCESS && here.context->handle != nullptr ? std::optional(std::move(here)) : std::nullopt;
} catch (...) {  // out of memory of the host
  return std::nullopt;
}

std::optional<std::uint64_t> used_on(Contexts &contexts, int device) {
  std::optional<std::uint64_t> used;
  if (real.cuMemGetInfo_v2.present()) {
    ask_in_context_of(contexts, device, [&] {
      std::size_t free_bytes = 0;
      std::size_t total = 0;
      if (real.cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS) {
        used = total - std::min(free_bytes, total);
      }
    });
  }
  return used;
}

CUresult run(const CallParts &parts, const char *api, std::uint64_t bytes, DriverCall call) {
  const CUresult result = call();
  const std::optional<Contexts::Current> here = result == CUDA_ERROR_OUT_OF_MEMORY ? current_in(parts) : std::nullopt;
  return here ? try_with_room(parts, {api, here->device, bytes}, Room::Patience::briefly, call) : result;
}

}  // namespace

Overhead::Overhead(const CallParts &parts)
    : parts_(parts), measures_(parts.options.charge_context || parts.journal.is_read()) {}

Overhead::Span::Span(Overhead &overhead, int device) : state_(overhead.states_[device]) {
  {
    Guard guard(overhead.mutex_);
    if (state_.measuring.fetch_add(1) == 0) {
      state_.base.reset();
    }
  }
  held::note(end, &state_);
  const std::optional<Reading> before = overhead.read(device);
  Guard guard(overhead.mutex_);
  if (!state_.base) {
    state_.base = before;
  }
}

Overhead::Span::~Span() {
  if (held::forget(end, &state_)) {
    end(&state_);
  }
}

std::uint64_t Overhead::State::sum() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

std::optional<std::int64_t> Overhead::State::taken(const Measure &measure, const Reading &now) {
  for (int source = 0; base && source < kSources; ++source) {
    const std::optional<std::int64_t> &before = base->beyond[static_cast<std::size_t>(source)];
    const std::optional<std::int64_t> &after = now.beyond[static_cast<std::size_t>(source)];
    if (!before || !after || (source == kProcess && !now.named)) {
      continue;
    }
    const std::int64_t bytes = *after - *before;
    if (bytes < 0 && !measure.gives) {
      return 0;  // the baseline stays: another call's figure is older than that
    }
    base = now;
    return source == kProcess || bytes < 0
               ? bytes
               : static_cast<std::int64_t>(
                     std::min(static_cast<std::uint64_t>(bytes), std::min<std::uint64_t>(measure.most, INT64_MAX)));
  }
  return std::nullopt;
}

Overhead::Reading Overhead::beyond_books(int device, const ProcessFigure &figure, std::optional<std::uint64_t> used) {
  const std::uint64_t charged = parts_.account(device).charged();
  const std::uint64_t books = charged - (parts_.options.charge_context ? std::min(charged, states_[device].sum()) : 0);
  const auto beyond = [books](const std::optional<std::uint64_t> &bytes) {
    return bytes ? std::optional(static_cast<std::int64_t>(*bytes) - static_cast<std::int64_t>(books)) : std::nullopt;
  };
  Reading reading;
  reading.named = figure.bytes.has_value();
  reading.beyond[kProcess] = beyond(figure.bytes);
  if (figure.listed && !figure.bytes && books == 0) {
    reading.beyond[kProcess] = 0;  // a process without a context; one with blocks has another number there
  }
  reading.beyond[kDriver] = beyond(used);
  reading.beyond[kMonitor] = beyond(figure.of_all);
  return reading;
}

std::optional<Overhead::Reading> Overhead::read(int device) noexcept try {
  const Device *known = parts_.devices.find(device);
  if (known == nullptr) {
    return std::nullopt;
  }
  const ledger::Changes &changes = parts_.account(device).changes();
  Backoff backoff;
  for (int look = 1;; ++look) {
    if (const std::optional<std::uint64_t> before = changes.when_quiet()) {
      const RelaxedCapture relaxed;
      const ProcessFigure figure = parts_.figures.on(*known);
      const std::optional<std::uint64_t> used = used_on(parts_.contexts, device);
      Guard guard(mutex_);
      const Reading reading = beyond_books(device, figure, used);
      if (changes.when_quiet() == before) {
        return reading;
      }
    }
    if (look == kLooks) {
      return std::nullopt;
    }
    backoff.sleep();
  }
} catch (...) {  // out of memory of the host
  return std::nullopt;
}

void Overhead::change(int device, Part part, std::int64_t bytes) {
  if (part == Part::bound) {
    states_[device].bounds += static_cast<std::uint64_t>(bytes);
  }
  change(device, kKinds[static_cast<int>(part)], bytes);
}

void Overhead::change(int device, OverheadKind kind, std::int64_t bytes) {
  State &state = states_[device];
  std::uint64_t &held = state.bytes[static_cast<std::size_t>(kind)];
  if (bytes > 0) {
    held += static_cast<std::uint64_t>(bytes);
  } else {
    held -= std::min(held, static_cast<std::uint64_t>(-bytes));
  }
  if (parts_.options.charge_context && bytes > 0) {
    parts_.account(device).charge(static_cast<std::uint64_t>(bytes));
  } else if (parts_.options.charge_context && bytes < 0) {
    parts_.account(device).release(static_cast<std::uint64_t>(-bytes));
  }
  std::array<std::uint64_t, events::kOverheadKinds> told = state.bytes;
  std::uint64_t &contexts = told[static_cast<std::size_t>(OverheadKind::context)];
  contexts -= std::min(contexts, state.bounds);
  parts_.journal.count_overhead(device, told);
}

// Counts what the process holds beyond the charged bytes and the measured figures: memory of launches and streams, or
// of a call that could not be measured. Not while other calls are being measured, because they will find theirs.
void Overhead::charge_rest(int device, const Reading &now) {
  State &state = states_[device];
  if (!now.named || !now.beyond[kProcess] || state.measuring.load() > 1) {
    return;
  }
  const auto had = static_cast<std::int64_t>(state.bytes[static_cast<std::size_t>(OverheadKind::other)]);
  const std::int64_t measured = static_cast<std::int64_t>(state.sum()) - had;
  change(device, OverheadKind::other, std::max<std::int64_t>(*now.beyond[kProcess] - measured, 0) - had);
}

void Overhead::finish(const char *api, const Measure &measure) noexcept try {
  Owner owner = measure.owner;
  const std::optional<Reading> now = read(owner.device);
  {
    Guard guard(mutex_);
    State &state = states_[owner.device];
    const std::optional<std::int64_t> measured = now ? state.taken(measure, *now) : std::nullopt;
    std::int64_t bytes = measured.value_or(0);
    if (!measured && measure.first) {
      owner.part = Part::bound;
      parts_.journal.count_unmeasured(owner.device);
      if (parts_.options.charge_context && now &&
          now->beyond[kDriver]) {  // all that is on the device and not ours: the strictest reading
        bytes = std::max<std::int64_t>(*now->beyond[kDriver] - static_cast<std::int64_t>(state.sum()), 0);
      }
    }
    std::uint64_t &held = owners_[owner];
    bytes = std::max(bytes, -static_cast<std::int64_t>(held));
    held = static_cast<std::uint64_t>(static_cast<std::int64_t>(held) + bytes);
    if (bytes != 0) {
      change(owner.device, owner.part, bytes);
    }
    if (now) {
      charge_rest(owner.device, *now);
    }
  }
  if (parts_.options.charge_context) {
    return_excess(parts_, api, owner.device);
  }
} catch (...) {  // out of memory of the host
}

CUresult Overhead::launch(const char *api, DriverCall call) {
  return run(parts_, api, 0, call);
}

// `made` returns what the memory was taken for.
CUresult Overhead::measured(const char *api, int device, DriverCall call, FunctionRef<std::optional<Measure>()> made) {
  std::optional<Span> span;
  if (measures_) {
    span.emplace(*this, device);
  }
  const CUresult result = call();
  const std::optional<Measure> measure = result == CUDA_SUCCESS ? made() : std::nullopt;
  if (measures_ && measure) {
    finish(api, *measure);
  }
  return result;
}

CUresult Overhead::load_module(const char *api, CUmodule *module, DriverCall call) {
  const std::optional<Contexts::Current> here = measures_ && module != nullptr ? current_in(parts_) : std::nullopt;
  const auto load = [&] { return run(parts_, api, 0, call); };
  const auto made = [&] {
    return std::optional(Measure{{here->device, here->context->number, Part::module, *module}});
  };
  return here ? measured(api, here->device, load, made) : load();
}

CUresult Overhead::use_library(const char *api, CUlibrary library, DriverCall call) {
  const std::optional<Contexts::Current> here = measures_ ? current_in(parts_) : std::nullopt;
  const auto load = [&] { return run(parts_, api, 0, call); };
  if (!here) {
    return load();
  }
  const Measure measure{{here->device, here->context->number, Part::library, library}};
  const auto is_known = [&] {
    Guard guard(mutex_);
    return owners_.count(measure.owner) != 0;
  };
  return is_known() ? call() : measured(api, here->device, load, [&] { return std::optional(measure); });
}

// If the driver does not say which library the kernel is from, its memory is taken unseen.
CUresult Overhead::use_kernel(const char *api, CUkernel kernel, DriverCall call) {
  CUlibrary library = nullptr;
  return measures_ && real.cuKernelGetLibrary.present() && real.cuKernelGetLibrary(&library, kernel) == CUDA_SUCCESS
             ? use_library(api, library, call)
             : run(parts_, api, 0, call);
}

CUresult Overhead::set_limit(CUlimit limit, std::size_t value, DriverCall call) {
  constexpr const char *kApi = "cuCtxSetLimit";
  const std::optional<Contexts::Current> here = measures_ ? current_in(parts_) : std::nullopt;
  const Device *device = here ? parts_.devices.find(here->device) : nullptr;
  if (device == nullptr) {
    return run(parts_, kApi, 0, call);
  }
  const std::uint64_t most = most_of(limit, value, device->handle);
  const Measure measure{{here->device, here->context->number, Part::limit,
                         reinterpret_cast<const void *>(static_cast<std::uintptr_t>(limit))},
                        most,
                        true};
  const auto set = [&] { return run(parts_, kApi, most != UINT64_MAX ? most : 0, call); };
  return measured(kApi, here->device, set, [&] { return std::optional(measure); });
}

CUresult Overhead::make_context(const char *api, int device, Room::Patience patience, DriverCall call,
                                FunctionRef<ContextRef()> note) {
  const auto make = [&] {
    const CUresult result = call();
    const bool refused = result == CUDA_ERROR_OUT_OF_MEMORY && device >= 0;
    const CUresult answer = refused ? try_with_room(parts_, {api, device, 0}, patience, call) : result;
    if (answer == CUDA_SUCCESS && device >= 0) {
      parts_.account(device).show_presence();
    }
    return answer;
  };
  const auto made = [&] {
    const ContextRef context = note();
    return context != nullptr
               ? std::optional(Measure{{device, context->number, Part::context, 0}, kMostOfContext, false, true})
               : std::nullopt;
  };
  return measured(api, device, make, made);
}

template <class Which>
Overhead::Entries Overhead::take_out(const Which &which) {
  Entries taken;
  Guard guard(mutex_);
  for (auto each = owners_.begin(); each != owners_.end();) {
    if (which(each->first)) {
      taken.emplace_back(*each);
      each = owners_.erase(each);
    } else {
      ++each;
    }
  }
  return taken;
}

void Overhead::end(const Entries &entries) {
  Guard guard(mutex_);
  for (const auto &[owner, bytes] : entries) {
    change(owner.device, owner.part, -static_cast<std::int64_t>(bytes));
    State &state = states_[owner.device];
    for (int source = 0; state.base && source < kSources; ++source) {
      if (std::optional<std::int64_t> &beyond = state.base->beyond[static_cast<std::size_t>(source)]) {
        *beyond -= static_cast<std::int64_t>(bytes);  // calls that are being measured took none of that
      }
    }
  }
}

// The entries are taken out before the call: once the driver has unloaded the module or library, another thread may get
// its handle.
CUresult Overhead::unload(Part part, const void *handle, DriverCall call) {
  Entries entries;
  if (measures_) {
    try {
      entries = take_out([&](const Owner &owner) { return owner.part == part && owner.handle == handle; });
    } catch (...) {  // out of memory of the host: it stays charged until its context ends
    }
  }
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    end(entries);
  } else if (!entries.empty()) {
    Guard guard(mutex_);
    for (const auto &[owner, bytes] : entries) {
      try {
        owners_[owner] += bytes;
      } catch (...) {
      }
    }
  }
  return result;
}

void Overhead::context_ended(const Context &context) noexcept try {
  if (!measures_) {
    return;
  }
  end(take_out([&](const Owner &owner) { return owner.device == context.device && owner.context == context.number; }));
  const std::vector<ContextRef> live = parts_.contexts.live();
  if (std::none_of(live.begin(), live.end(),
                   [&](const ContextRef &other) { return other->device == context.device; })) {
    Guard guard(mutex_);  // launches' memory has gone with the last one
    change(context.device, OverheadKind::other,
           -static_cast<std::int64_t>(states_[context.device].bytes[static_cast<std::size_t>(OverheadKind::other)]));
  }
} catch (...) {  // out of memory of the host
}

void Overhead::correct(int device) noexcept try {
  const Device *known = parts_.options.charge_context ? parts_.devices.find(device) : nullptr;
  if (known == nullptr) {
    return;
  }
  const ledger::Changes &changes = parts_.account(device).changes();
  const std::optional<std::uint64_t> before = changes.when_quiet();
  const ProcessFigure figure = before ? parts_.figures.on(*known) : ProcessFigure{};
  Guard guard(mutex_);
  if (figure.bytes && states_[device].measuring.load() == 0) {
    const Reading now = beyond_books(device, figure, std::nullopt);
    if (changes.when_quiet() == before) {
      charge_rest(device, now);
    }
  }
} catch (...) {  // out of memory of the host
}

}  // namespace ration::policy
