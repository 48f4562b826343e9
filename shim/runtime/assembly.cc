#include "runtime/assembly.h"

#include <utility>
#include <vector>

namespace ration::runtime {

using driver::real;

// Members store references to others that are not built yet, but do not use them here.
Assembly::Assembly(Options asked, policy::LimitSource &limits, events::JournalOptions journal_options,
                   policy::ProcessFigures &figures, std::string &problem)
    : options(std::move(asked)),
      parts{options, faults,  figures,   ledger,       journal,       devices,  contexts,     captures,
            fences,  exports, pending,   stream_pools, default_pools, pools,    async_pools,  imports,
            room,    books,   admission, async_memory, sync_memops,   overhead, mapped_memory},
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
      async_pools({devices, contexts, ledger, journal, stream_pools, fences}, options.deterministic),
      imports(fences, limits.state_folder()),
      room(parts),
      books(parts),
      admission(parts),
      async_memory(parts),
      sync_memops(parts),
      overhead(parts),
      device_memory(parts),
      host_memory(parts),
      mapped_memory(parts),
      array_memory(parts),
      stream_memory(parts),
      graph_memory(parts),
      shared_blocks(parts),
      context_life(parts),
      sync_and_capture(parts),
      device_reach(parts),
      queries(parts) {}

void Assembly::describe() {
  const std::vector<policy::Device> *known = journal.described() ? nullptr : devices.all();
  if (known == nullptr) {
    return;
  }
  int version = 0;
  if (real.cuDriverGetVersion.present()) {
    real.cuDriverGetVersion(&version);
  }
  std::vector<events::DeviceFacts> facts;
  for (const policy::Device &device : *known) {
    events::DeviceFacts &of = facts.emplace_back(device.facts());
    const std::uint64_t group_limit = ledger.account(device.ordinal).group_limit();
    of.group_limit = group_limit != ledger::kNoLimit ? group_limit : 0;
    of.mode = options.async && !policy::AsyncPools::supported_on(device.handle) ? "pool" : "";
    if (options.pool && (!options.async || !of.mode.empty())) {
      of.backing = policy::name_of(pools.granules.backing_on(device.handle, of.backing_reason));
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
    journal.name_group(number, static_cast<std::uint32_t>((*each)->kind()), (*each)->name(), (*each)->random());
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
