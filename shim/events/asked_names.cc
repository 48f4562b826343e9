#include "events/asked_names.h"

#include <cstring>

#include "base/asked_names.h"
#include "base/raise_to.h"

namespace ration::events {
namespace {

std::uint64_t of_memory(const RationNames &names) {
  return __atomic_load_n(&names.of_memory, __ATOMIC_RELAXED);
}

bool is_full(const RationNames &names) {
  return __atomic_load_n(&names.count, __ATOMIC_RELAXED) >= RATION_NAMES_COUNTED;
}

}  // namespace

void AskedNames::publish(const RationCoverage &asked, SummaryPage &page) noexcept {
  raise_to(page.unknown_of_memory, of_memory(asked.unknown_names) + of_memory(asked.newer));
  if (is_full(asked.unknown_names) || is_full(asked.newer)) {
    page.unknown_is_cut.store(1, std::memory_order_relaxed);
  }
  publish(asked.unknown_names, unknown_, page);
  publish(asked.newer, newer_, page);
}

void AskedNames::publish(const RationNames &names, Published &published, SummaryPage &page) noexcept {
  for (unsigned place = 0; place < RATION_NAMES_KEPT; ++place) {
    const char *name = name_at(names, place);
    if (name == nullptr || !may_take_memory(name) || published[place].exchange(true, std::memory_order_relaxed)) {
      continue;
    }
    if (page.unknown_kept.load(std::memory_order_relaxed) >= kMostUnknown) {
      return;
    }
    const std::uint32_t free = page.unknown_kept.fetch_add(1, std::memory_order_relaxed);
    if (free < kMostUnknown) {
      std::strncpy(page.unknown[free].text, name, sizeof(page.unknown[free].text) - 1);
      page.unknown[free].is_written.store(1, std::memory_order_release);  // pairs with the acquire in read_summary
    }
  }
}

}  // namespace ration::events
