// Calls of this process that take memory of one device or give it back, from before the first of {driver, books} knows
// until both do. Figures of the driver and of the books that are to be compared are read while none is under way.
// Layer: ledger. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/held.h"

namespace ration::ledger {

class Changes {
 public:
  // Equal answers before and after a look: nothing has changed meanwhile. nullopt: a change is under way.
  std::optional<std::uint64_t> when_quiet() const {
    const std::uint64_t begun = begun_.load();
    return under_way_.load() == 0 ? std::optional(begun) : std::nullopt;
  }

 private:
  friend class Change;
  std::atomic<int> under_way_{0};
  std::atomic<std::uint64_t> begun_{0};
};

class Change {
 public:
  explicit Change(Changes &changes) : Change(&changes) {}
  // Null: nothing that is charged changes.
  explicit Change(Changes *changes) : changes_(changes) {
    if (changes_ != nullptr) {
      changes_->under_way_.fetch_add(1);  // first: who sees the old count sees this
      changes_->begun_.fetch_add(1);
      held::note(end, changes_);
    }
  }
  ~Change() {
    if (changes_ != nullptr && held::forget(end, changes_)) {
      end(changes_);
    }
  }
  Change(const Change &) = delete;
  Change &operator=(const Change &) = delete;

 private:
  static void end(void *changes) noexcept { static_cast<Changes *>(changes)->under_way_.fetch_sub(1); }
  Changes *const changes_;
};

}  // namespace ration::ledger
