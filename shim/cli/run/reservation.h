// What a command was promised before it starts: its guarantee in its group, or, with `--wait`, its guarantee or limit
// where and when there is room. Held for the whole run, by this process and by those that it starts.
// Layer: cli. Threads: one. Owns: a place in a group, or in the queue of runs without a group, as long as it lives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/base/verbs.h"
#include "cli/launch/environment_block.h"
#include "cli/run/device_neighbours.h"
#include "config/settings.h"
#include "events/summary_page.h"
#include "ledger/membership.h"

namespace ration::cli {

// Design: design/groups.md#room-before-the-start
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
    std::uint64_t limit = 0;             // of the group; UINT64_MAX: none
    int place = -1;                      // of the device, in the group
    std::uint64_t ordered = UINT64_MAX;  // less than it has, once what the tree holds allows it
  };
  void obey(std::uint64_t orders);
  std::uint64_t held_by_command(const Need &need) const;
  bool claim();
  void claim_now();  // as soon as others have given what they do not use
  enum class Room { enough, was_asked_for, none };
  // `idle`: of which what is lacking is wished; nullptr: others wait ahead, and nobody is asked.
  Room room(class NvmlProcess &devices, IdleMemory *idle);
  static std::string amount_of(const Need &need);
  std::uint64_t overhead_of(const Need &need, const std::vector<ledger::Group> &groups, std::uint64_t not_ours) const;
  void wait(const std::string &longest, const EnvironmentBlock &environment);
  struct Shortage {
    std::string amount, why;
    std::vector<std::int64_t> by;  // who and what hold it up: with another one there is something new to say
    void take(const std::vector<DeviceHolder> &holders, std::uint64_t used);
  };
  [[nodiscard]] Shortage shortage() const;
  [[nodiscard]] std::vector<DeviceHolder> ahead_of(const std::vector<ledger::Group> &groups) const;
  void share_with_command();

  std::string folder_;
  std::string tree_;  // everything that the run starts
  std::unique_ptr<ledger::Membership> place_;
  std::uint64_t identity_ = 0;  // there
  std::vector<Need> needs_;
  Shortage scarce_;                  // at the last look at the devices; without an amount: none
  std::vector<DeviceHolder> ahead_;  // then; `reserved` is what they wait for
  int inherited_ = -1;               // keeps the place of the queue while the command lives
};

}  // namespace ration::cli
