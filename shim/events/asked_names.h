// Copies to the summary page, for `ration run`, the names of functions that the program looked up but Ration does not
// know. Layer: events. Threads: any; no lock, no allocation. Called from: a look-up, first use, exit.
#pragma once

#include <atomic>

#include "core_abi.h"
#include "events/summary_page.h"

namespace ration::events {

class AskedNames {
 public:
  // Adds to `page` those names in `asked` that are new since the last call and whose functions may take memory.
  void publish(const RationCoverage &asked, SummaryPage &page) noexcept;

 private:
  using Published = std::atomic<bool>[RATION_NAMES_KEPT];
  static void publish(const RationNames &names, Published &published, SummaryPage &page) noexcept;

  Published unknown_{};
  Published newer_{};
};

}  // namespace ration::events
