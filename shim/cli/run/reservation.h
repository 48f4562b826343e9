// What a command was promised before it starts: its guarantee in its group, or, with `--wait`, its guarantee or limit
// where and when there is room. Held for the whole run, by this process and by those that it starts.
// Layer: cli. Threads: one. Owns: a place in a group, or in the queue of runs without a group, as long as it lives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/base/verbs.h"
#include "cli/run/environment_block.h"
#include "config/settings.h"
#include "events/summary_page.h"
#include "ledger/membership.h"

namespace ration::cli {

class Reservation {
 public:
  Reservation() = default;
  // Waits where that was asked for. Makes everything that the run starts one tree, by `environment`. Throws Refusal
  // where the promise cannot be given. REQUIRES: `environment` is that of the command, but for its LD_PRELOAD.
  Reservation(const RunRequest &request, const config::Settings &settings, EnvironmentBlock &environment);
  ~Reservation();
  Reservation(Reservation &&) noexcept;
  Reservation &operator=(Reservation &&) noexcept;

  [[nodiscard]] bool is_held() const { return place_ != nullptr; }
  // Sets another guarantee, where one was ordered meanwhile (`ration set`).
  void heed();
  // What the driver took on its own account, which later runs leave room for.
  void learn(const std::vector<events::Summary> &summaries);

 private:
  struct Need {
    int ordinal = 0;
    std::string uuid;
    std::uint64_t total = 0, bytes = 0;
    std::uint64_t limit = 0;  // of the group; UINT64_MAX: none
    int place = -1;           // of the device, in the group
  };
  bool claim();
  enum class Room { enough, was_asked_for, none };
  // `idle`: of which what is lacking is wished; nullptr: nobody is asked.
  Room room(class FreeMemory &devices, class IdleMemory *idle);
  static std::string wanted_of(const Need &need);
  std::uint64_t overhead_of(const Need &need, const std::vector<ledger::Group> &groups, std::uint64_t free_bytes) const;
  void wait(const std::string &longest, const EnvironmentBlock &environment);
  [[nodiscard]] std::string shortage() const;
  void share_with_command();

  std::string folder_;
  std::unique_ptr<ledger::Membership> place_;
  std::vector<Need> needs_;
  std::string scarce_;  // which device lacked what at the last look, and who holds it; empty: none
  int inherited_ = -1;  // keeps the place of the queue while the command lives
};

}  // namespace ration::cli
