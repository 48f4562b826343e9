#include "runtime/assembly.h"

#include <utility>
#include <vector>

namespace ration::runtime {

using driver::real;

// Members refer to each other before they are built; none is called here.
Assembly::Assembly(const Options &options, policy::LimitSource &limits, events::JournalOptions journal_options,
                   policy::ProcessFigures &figures, std::string &problem)
    : async_mode(options.async),
      pool_mode(options.pool),
      faults(options.faults),
      journal(std::move(journal_options), problem),
      devices(limits, ledger),
      contexts(devices),
      fences(contexts, captures),
      exports(limits.state_folder()),
      pending(ledger, mapped_memory),
      stream_pools(ledger, journal),
      default_pools(devices, ledger, stream_pools),
      pools({devices, ledger, journal, contexts, fences, context_pools}, exports, room,
            {faults.any(), options.synchronous_free, options.backing}),
      async_pools(devices, contexts, ledger, journal, stream_pools, fences, options.deterministic),
      imports(fences, limits.state_folder()),
      room(contexts, ledger, journal, fences, pending, stream_pools, pools, async_pools, options.wait_ns),
      books(ledger, journal, pools, stream_pools),
      admission(devices, contexts, captures, ledger, journal, books, pools, stream_pools, async_pools, room, faults),
      async_memory(devices, ledger, journal, books, pools, stream_pools, async_pools, admission, options.async,
                   options.synchronous_free),
      sync_memops(pools, imports),
      room_for_driver(ledger, async_pools, room, admission),
      overhead(devices, contexts, ledger, journal, figures, room_for_driver, options.charge_context),
      device_memory({options.pool, options.large_direct, options.limit_managed}, ledger, journal, books, pools,
                    admission, room, async_memory, imports),
      host_memory(devices, books, admission),
      mapped_memory(devices, contexts, ledger, journal, books, pools, pending, admission, imports),
      array_memory(ledger, books, admission, mapped_memory),
      stream_memory(devices, ledger, contexts, captures, journal, books, pools, stream_pools, default_pools, pending,
                    admission, async_memory, room),
      graph_memory(devices, ledger, captures, books, stream_pools, admission),
      shared_blocks(contexts, pools, exports, imports, admission, async_memory),
      context_life(devices, contexts, books, pools, async_pools, stream_pools, imports, pending, mapped_memory,
                   overhead, options.async),
      sync_and_capture(contexts, captures, pools, async_pools, stream_pools, imports, options.pool || options.async),
      device_reach(contexts, fences, pools, async_memory, imports, sync_memops),
      queries(devices, ledger, pools, stream_pools, default_pools, async_pools, pending, imports, admission, room,
              async_memory, sync_memops, overhead, options.show_limit) {}

void Assembly::describe() {
  if (journal.described() || devices.all() == nullptr) {
    return;
  }
  int version = 0;
  if (real.cuDriverGetVersion.present()) {
    real.cuDriverGetVersion(&version);
  }
  std::vector<events::DeviceFacts> facts = devices.facts();
  for (events::DeviceFacts &device : facts) {
    const std::uint64_t group_limit = ledger.account(device.ordinal).group_limit();
    device.group_limit = group_limit != ledger::kNoLimit ? group_limit : 0;
    const policy::Device *known = devices.find(device.ordinal);
    if (known == nullptr) {
      continue;
    }
    device.mode = async_mode && !policy::AsyncPools::supported_on(known->handle) ? "pool" : "";
    if (pool_mode && (!async_mode || !device.mode.empty())) {
      device.backing = policy::name_of(pools.granules.backing_on(known->handle, device.backing_reason));
    }
  }
  name_groups(facts);
  journal.describe(std::move(facts), version);
  devices.note_limits_in(&journal);
}

void Assembly::name_groups(const std::vector<events::DeviceFacts> &facts) {
  unsigned number = 0;
  const auto &joined = ledger.memberships();
  for (auto each = joined.rbegin(); each != joined.rend() && number < events::kMostGroups; ++each) {
    if ((*each)->kind() == ledger::GroupKind::kNone) {
      continue;
    }
    journal.name_group(number, static_cast<std::uint32_t>((*each)->kind()), (*each)->name());
    for (const events::DeviceFacts &device : facts) {
      ledger.account(device.ordinal).leave_figures(each->get(), &journal.group_figures(number, device.ordinal));
    }
    ++number;
  }
  if (number != 0) {
    journal.when_taken([](void *of, int device) { static_cast<ledger::Ledger *>(of)->account(device).note_groups(); },
                       &ledger);
  }
}

}  // namespace ration::runtime
