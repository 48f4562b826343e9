// Stands between the objects of a core that is otherwise the shipped one, object for object (the linker's --wrap), and
// says what becomes of each call: a hit itself counts nothing that a test could read.
#include "witness.h"

#include <cstdint>

using preload::pool::Seen;

// Members by their exports' names: `this` is the first argument of each. A name that changes does not link.
#pragma weak preload_witness
bool real_allocate_hit(void *, std::uint64_t,
                       unsigned long long *) asm("__real__ZN6ration6policy10BlockPools12allocate_hitEmPy");
bool allocate_hit(void *, std::uint64_t,
                  unsigned long long *) asm("__wrap__ZN6ration6policy10BlockPools12allocate_hitEmPy");
bool real_free_hit(void *, std::uint64_t) asm("__real__ZN6ration6policy10BlockPools8free_hitEm");
bool free_hit(void *, std::uint64_t) asm("__wrap__ZN6ration6policy10BlockPools8free_hitEm");
void real_collect_due(void *) asm("__real__ZN6ration6policy10Quarantine11collect_dueEv");
void collect_due(void *) asm("__wrap__ZN6ration6policy10Quarantine11collect_dueEv");
void real_tell(void *, const void *) asm("__real__ZN6ration6ledger7Account7publishERKNS0_9PublishedE");
void tell(void *, const void *) asm("__wrap__ZN6ration6ledger7Account7publishERKNS0_9PublishedE");

namespace {

void say(Seen what) noexcept {
  if (preload_witness != nullptr) preload_witness(what);
}

}  // namespace

bool allocate_hit(void *pools, std::uint64_t bytes, unsigned long long *address) {
  const bool served = real_allocate_hit(pools, bytes, address);
  if (served) say(Seen::served);
  return served;
}

bool free_hit(void *pools, std::uint64_t address) {
  const bool served = real_free_hit(pools, address);
  if (served) say(Seen::served);
  return served;
}

void collect_due(void *quarantine) {
  say(Seen::looked);
  real_collect_due(quarantine);
}

void tell(void *account, const void *told) {
  say(Seen::told);
  real_tell(account, told);
}
