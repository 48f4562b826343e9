#include "runtime/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/cancellation.h"
#include "base/fork_exclusion.h"
#include "base/wait.h"
#include "config/settings.h"
#include "policy/devices/nvml_figures.h"
#include "runtime/assembly.h"
#include "runtime/configured_limits.h"

namespace ration::runtime {

namespace {

constinit std::atomic<Assembly *> built{nullptr};  // for the exit handler
constinit std::atomic<pid_t> builder{0};  // the process whose thread is building; a child may inherit the parent's ID
// Every racing first caller stores the same values, so relaxed accesses suffice.
constinit std::atomic<const RationCoverage *> coverage{nullptr};
constinit std::atomic<events::Via (*)(const void *)> via_of{nullptr};
using Function = void (*)(void *);
constinit std::atomic<void (*)(Function, void *)> on_own_stack{nullptr};
constinit std::atomic<bool (*)() noexcept> in_interrupted_call{nullptr};
constinit std::atomic<const std::uint32_t *> limit_changes{nullptr};
constinit std::atomic<bool (*)(bool)> find_nvml{nullptr};

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

bool in_async_pools(const config::Settings &settings) {
  return settings.mode == config::Mode::kAsync && policy::AsyncPools::possible();
}

// If the driver cannot report when a freed block may be used again, each block is the driver's own (mode direct). If
// the driver or a device has no memory pools, mode async uses Ration's own pools.
// Design: design/modes.md#fallback
bool in_pools(const config::Settings &settings) {
  return settings.mode != config::Mode::kDirect && policy::FenceTracker::can_tell();
}

events::JournalOptions journal_options(const config::Settings &settings, config::SettingsContext own) {
  events::JournalOptions options;
  options.limit_changes = limit_changes.load(std::memory_order_relaxed);
  own.environment = config::process_environment();  // another thread may have replaced the list since then
  if (!settings.log.empty()) {
    options.log =
        config::expand_path(config::plain_log(settings.log), getpid(), host_name(), program_invocation_short_name);
    options.tree_marks.push_back("RATION_LOG=" + settings.log);
    options.log_size = settings.log_size ? settings.log_size->bytes_of(0) : 0;
    options.stacks = settings.stacks == config::Stacks::kNative   ? events::Stacks::native
                     : settings.stacks == config::Stacks::kPython ? events::Stacks::python
                                                                  : events::Stacks::none;
  }
  if (!settings.summary_directory.empty()) {
    options.summary_directory = settings.summary_directory;
    options.tree_marks.push_back("RATION_SUMMARY=" + settings.summary_directory);
  }
  options.meta.mode = in_async_pools(settings) ? "async" : in_pools(settings) ? "pool" : "direct";
  for (const char *entry : config::environment_of(own)) {
    const std::string_view text(entry == nullptr ? "" : entry);  // the list ends with a null
    if (text.substr(0, 7) == "RATION_") {
      const std::size_t equals = std::min(text.find('='), text.size());
      options.meta.environment.emplace_back(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
    }
  }
  for (const config::Origin &origin : settings.origins) {
    options.meta.settings.push_back(
        {origin.key, origin.value, std::string(config::name_of(origin.source)), origin.place, origin.locked});
  }
  for (const config::ThirdPartyVariable &word : settings.third_party) {
    options.meta.foreign.push_back(
        {word.variable, word.value, std::string(config::name_of(word.disposition)), word.reason});
  }
  return options;
}

events::Level level_of(config::DiagnosticLevel level) {
  constexpr events::Level kLevels[] = {events::Level::off, events::Level::warn, events::Level::info,
                                       events::Level::debug, events::Level::trace};
  return kLevels[static_cast<int>(level)];
}

void explain_settings(const config::Settings &settings) {
  if (events::shows(events::Level::info)) {
    for (const std::string &sentence : settings.explained()) {
      events::explain(events::Level::info, sentence);
    }
  }
}

void explain_hooks() {
  if (!events::shows(events::Level::debug)) {
    return;
  }
  unsigned found = 0;
  for (unsigned row = 0; row < driver::kHookCount; ++row) {
    const bool is_there = driver::real.hooked(static_cast<driver::Hook>(row)) != nullptr;
    found += is_there ? 1 : 0;
    events::explain(events::Level::trace, "hook ", driver::identities[row].symbol,
                    is_there ? ": resolved" : ": the driver lacks the function");
  }
  events::explain(events::Level::debug, "hooks: ", found, " of ", driver::kHookCount, " functions are in this driver");
}

// Does nothing in a forked child, whose log and files of shared blocks are the parent's. If a signal handler calls
// exit(3) after its signal interrupted one of our calls, locks that this call holds are never released, so the log is
// left without its `end`.
void at_exit() {
  Assembly *assembly = built.load(std::memory_order_acquire);
  const auto interrupted = in_interrupted_call.load(std::memory_order_relaxed);
  if (assembly != nullptr && assembly->birthplace.is_here() && (interrupted == nullptr || !interrupted())) {
    assembly->describe();
    assembly->exports.leave();
    assembly->pools.gifts.stop_giving();
    assembly->journal.end(coverage.load(std::memory_order_relaxed));
  }
}

// The child never touches the parent's runtime again, because its locks may be held by threads that the child does not
// have. It closes its descriptor of the parent's log, which would otherwise stay claimed while the child lives.
// Design: design/first-use.md#forked-children
void in_child() {
  events::close_inherited_log();
  Runtime::forget();
  built.store(nullptr, std::memory_order_relaxed);
  builder.store(0, std::memory_order_relaxed);
}

// Registers once per program image; a forked child inherits the registration. Only the building thread calls this. A
// guarded static is not used, because a child forked in the middle would inherit its guard locked. In such a child the
// handler may be registered twice, which is harmless.
void register_at_exit() {
  static bool registered = false;
  if (!registered) {
    registered = std::atexit(at_exit) == 0;
  }
}

}  // namespace

struct Builder {
  static void serve(Assembly &assembly) noexcept {
    family<policy::DeviceMemory> = &assembly.device_memory;
    family<policy::HostMemory> = &assembly.host_memory;
    family<policy::ArrayMemory> = &assembly.array_memory;
    family<policy::MappedMemory> = &assembly.mapped_memory;
    family<policy::StreamMemory> = &assembly.stream_memory;
    family<policy::GraphMemory> = &assembly.graph_memory;
    family<policy::SharedBlocks> = &assembly.shared_blocks;
    family<policy::ContextLife> = &assembly.context_life;
    family<policy::SyncAndCapture> = &assembly.sync_and_capture;
    family<policy::DeviceReach> = &assembly.device_reach;
    family<policy::Overhead> = &assembly.overhead;
    family<policy::Queries> = &assembly.queries;
  }
  // The build excludes forks (ForkExclusion): a child forked meanwhile would inherit two locks of libc (glibc 2.36)
  // that the building thread may hold, and could never take them: that of the exit handlers, and the loader's in
  // dl_iterate_phdr.
  static void build_into(void *runtime) noexcept { *static_cast<Runtime **>(runtime) = build(); }
  static Runtime *build_on_own_stack() noexcept {
    Runtime *runtime = nullptr;
    const auto call = on_own_stack.load(std::memory_order_relaxed);
    call != nullptr ? call(build_into, &runtime) : build_into(&runtime);
    return runtime;
  }
  static Runtime *build() noexcept try {
    const ForkExclusion exclusion;
    call_in_forked_child(in_child);
    std::vector<config::Problem> problems;
    config::SettingsContext own = own_settings_context();
    config::Settings settings = config::read_settings(own, problems);
    events::begin_diagnostics(level_of(settings.diagnostics), settings.diagnostics_file);
    for (const config::Problem &problem : problems) {
      events::say(problem.line);
    }
    explain_settings(settings);
    explain_hooks();
    if (settings.disabled) {  // only in a forked child whose parent was not disabled: its calls already lead here
      settings.mode = config::Mode::kDirect;
    }
    Options options;
    options.show_limit = settings.show_limit;
    options.charge_context = settings.charge_context;
    options.limit_managed = settings.managed == config::Managed::kLimit;
    options.pool = in_pools(settings);
    options.async = in_async_pools(settings);
    options.deterministic = settings.deterministic_reuse;
    if (settings.mode == config::Mode::kAsync && !options.async) {
      events::say("mode async: this driver has no memory pools; mode " + std::string(options.pool ? "pool" : "direct") +
                  " serves");
    }
    options.synchronous_free = settings.free == config::Free::kSynchronous;
    options.backing = settings.backing == config::Backing::kVmm    ? policy::BackingKind::vmm
                      : settings.backing == config::Backing::kAuto ? policy::BackingKind::best
                                                                   : policy::BackingKind::slab;
    for (const config::Fault &fault : settings.fail) {
      const auto after = std::chrono::duration_cast<std::chrono::nanoseconds>(fault.after).count();
      options.faults.push_back({fault.above_bytes, fault.library, static_cast<std::uint64_t>(after), fault.nth,
                                fault.every, fault.probability, fault.seed});
    }
    options.large_direct = settings.ipc == config::Ipc::kDirect;
    options.wait_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(settings.wait).count());
    events::JournalOptions journal = journal_options(settings, std::move(own));
    events::explain(events::Level::info, "mode ", journal.meta.mode, " serves allocations");
    // Ration loads NVML itself only if NVML's figures decide how much the program may take.
    auto figures =
        std::make_unique<policy::NvmlFigures>(find_nvml.load(std::memory_order_relaxed),
                                              on_own_stack.load(std::memory_order_relaxed), options.charge_context);
    auto limits = std::make_unique<ConfiguredLimits>(std::move(settings));
    std::string problem;
    auto assembly = std::make_unique<Assembly>(options, *limits, std::move(journal), *figures, problem);
    if (!problem.empty()) {
      events::say("no log: " + problem);
    }
    assembly->books.set_via(via_of.load(std::memory_order_relaxed));
    assembly->devices.join_groups();
    register_at_exit();
    Runtime *runtime = new Runtime(*assembly);
    serve(*assembly);
    (void)figures.release();
    (void)limits.release();                                      // these four live as long as the process
    built.store(assembly.release(), std::memory_order_release);  // pairs with the acquire in at_exit
    return runtime;
  } catch (...) {
    events::say("cannot start: out of memory; every allocation is refused");
    return nullptr;
  }
};

void prepare(const Reports &given) {
  call_in_forked_child(in_child);  // early, because a fork that has already begun runs no handler
  coverage.store(given.coverage, std::memory_order_relaxed);
  via_of.store(given.via_of, std::memory_order_relaxed);
  on_own_stack.store(given.on_own_stack, std::memory_order_relaxed);
  in_interrupted_call.store(given.in_interrupted_call, std::memory_order_relaxed);
  find_nvml.store(given.find_nvml, std::memory_order_relaxed);
  limit_changes.store(given.limit_changes, std::memory_order_relaxed);
}

void publish_names() noexcept {
  const RationCoverage *asked = coverage.load(std::memory_order_relaxed);
  if (Runtime *runtime = Runtime::existing(); runtime != nullptr && asked != nullptr) {
    runtime->publish(*asked);
  }
}

void explain_look_up(const char *name, int version, const char *answer) noexcept {
  events::explain(events::Level::trace, "cuGetProcAddress of ", name, " in version ", version, ": ", answer);
}

void end_own_threads() noexcept {
  const CancellationOff uncancelled;
  Assembly *assembly = built.load(std::memory_order_acquire);
  if (assembly != nullptr && assembly->birthplace.is_here()) {  // a forked child has no such threads
    assembly->pools.gifts.end_giving();
    assembly->exports.end_thread();
  }
}

Runtime::Runtime(Assembly &assembly) : assembly_(assembly), has_stacks_(assembly.journal.has_stacks()) {}

std::uint64_t Runtime::stack_here() noexcept {
  const CancellationOff uncancelled;
  return assembly_.journal.stack_here();
}

void Runtime::publish(const RationCoverage &asked) noexcept {
  assembly_.journal.publish(asked);
}

// Logging fails open: if there is no host memory, the next call tries again.
void Runtime::describe() noexcept try {
  const CancellationOff uncancelled;
  assembly_.describe();
  described_.store(assembly_.journal.described(), std::memory_order_relaxed);
} catch (...) {
}

Runtime *Runtime::get_built() noexcept {
  const CancellationOff uncancelled;
  for (Waiter waiter;;) {
    if (Runtime *runtime = instance.load(std::memory_order_acquire)) {
      return runtime;
    }
    pid_t owner = 0;
    const pid_t self = getpid();
    if (builder.compare_exchange_strong(owner, self, std::memory_order_acquire)) {
      Runtime *runtime = instance.load(std::memory_order_acquire);
      if (runtime == nullptr) {
        runtime = Builder::build_on_own_stack();
        instance.store(runtime, std::memory_order_release);  // pairs with the acquire in existing()
        publish_names();                                     // names that were looked up before
      }
      builder.store(0);
      wake_waiters();
      return runtime;
    }
    if (owner != self) {  // the building thread was the parent's, and this child does not have it
      builder.compare_exchange_strong(owner, 0, std::memory_order_relaxed);
    }
    waiter.pause();
  }
}

}  // namespace ration::runtime
