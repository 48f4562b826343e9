// Linked between the objects of a core that is otherwise the shipped one (the linker's --wrap): records what becomes of
// each call, because a hit itself counts nothing that a test could read.
#include "recorder.h"

#include <cstdint>

using preload::pool::Seen;

// Members by their mangled names; `this` is the first argument of each. A name that changes does not link.
#pragma weak preload_record
bool real_allocate_hit(void *, std::uint64_t,
                       unsigned long long *) asm("__real__ZN6ration6policy8FastPath12allocate_hitEmPy");
bool allocate_hit(void *, std::uint64_t,
                  unsigned long long *) asm("__wrap__ZN6ration6policy8FastPath12allocate_hitEmPy");
bool real_free_hit(void *, std::uint64_t) asm("__real__ZN6ration6policy8FastPath8free_hitEm");
bool free_hit(void *, std::uint64_t) asm("__wrap__ZN6ration6policy8FastPath8free_hitEm");
void real_collect_freed(void *, bool) asm("__real__ZN6ration6policy10Quarantine13collect_freedEb");
void collect_freed(void *, bool) asm("__wrap__ZN6ration6policy10Quarantine13collect_freedEb");
void real_wait_after_free(void *, const char *, const void *, std::uint64_t) asm(
    "__real__ZN6ration6policy10DevicePool15wait_after_freeEPKcRKSt10shared_ptrINS0_7ContextEEm");
void wait_after_free(void *, const char *, const void *, std::uint64_t) asm(
    "__wrap__ZN6ration6policy10DevicePool15wait_after_freeEPKcRKSt10shared_ptrINS0_7ContextEEm");
void real_publish(void *, const void *) asm("__real__ZN6ration6ledger7Account7publishERKNS0_9PublishedE");
void publish(void *, const void *) asm("__wrap__ZN6ration6ledger7Account7publishERKNS0_9PublishedE");
// The threads that give are not started: they look once a second, would find the pages that the test has sealed gone,
// and the process would be in no group any more.
void real_start_giving(void *) asm("__real__ZN6ration6policy5Giver9start_nowEv");
void start_giving(void *) asm("__wrap__ZN6ration6policy5Giver9start_nowEv");

namespace {

void record(Seen what) noexcept {
  if (preload_record != nullptr) preload_record(what);
}

}  // namespace

bool allocate_hit(void *pools, std::uint64_t bytes, unsigned long long *address) {
  const bool served = real_allocate_hit(pools, bytes, address);
  if (served) record(Seen::served);
  return served;
}

bool free_hit(void *pools, std::uint64_t address) {
  const bool served = real_free_hit(pools, address);
  if (served) record(Seen::served);
  return served;
}

void collect_freed(void *quarantine, bool large) {
  record(Seen::due);
  real_collect_freed(quarantine, large);
}

void wait_after_free(void *device, const char *api, const void *owner, std::uint64_t bytes) {
  record(Seen::due);
  real_wait_after_free(device, api, owner, bytes);
}

void publish(void *account, const void *figures) {
  record(Seen::published);
  real_publish(account, figures);
}

void start_giving(void *) {}
