// Counts the calls of this process that take or return memory of one device. A call counts as in progress from before
// either the driver or Ration's records show its change until both show it. Figures from the driver and from the
// records may be compared only if no such call was in progress while they were read.
// Layer: ledger. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/held.h"

namespace ration::ledger {

class Changes {
 public:
  // If two calls return the same number, memory did not change between them. nullopt: a change is in progress.
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
  // `changes` is null if the call changes nothing that is charged.
  explicit Change(Changes *changes) : changes_(changes) {
    if (changes_ != nullptr) {
      changes_->under_way_.fetch_add(1);  // first: a thread that reads the new `begun_` sees this
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
