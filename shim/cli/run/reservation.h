// Memory that is promised to a command before it starts: its guarantee in its group. With `--wait`, its guarantee or
// limit is promised as soon as there is room. This process and those that it starts hold the promise during the whole
// run.
// Layer: cli. Threads: one. Owns: its membership in a group, or in the queue of runs without a group.
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
  // Waits for room if the request says so, and changes `environment` so that all processes that the run starts form one
  // tree. Throws Refusal if the promise cannot be given. REQUIRES: `environment` is the command's, except for
  // LD_PRELOAD.
  Reservation(const RunRequest &request, const config::Settings &settings, EnvironmentBlock &environment);
  ~Reservation();
  Reservation(Reservation &&) noexcept;
  Reservation &operator=(Reservation &&) noexcept;

  [[nodiscard]] bool is_held() const { return place_ != nullptr; }
  // Applies a new guarantee if `ration set` has requested one since the last call.
  void heed();
  // Records how much memory the driver took for its own use, so that later runs leave room for it.
  void learn(const std::vector<events::Summary> &summaries);

 private:
  struct Need {
    int ordinal = 0;
    std::string uuid;
    std::uint64_t total = 0, bytes = 0;
    std::uint64_t limit = 0;             // the group's limit; UINT64_MAX: none
    int place = -1;                      // the number of the device in the group
    std::uint64_t ordered = UINT64_MAX;  // a smaller guarantee, in force once the tree holds no more than that
  };
  void obey(std::uint64_t orders);
  std::uint64_t held_by_command(const Need &need) const;
  bool claim();
  void claim_now();  // waits until others have returned memory that they do not use
  enum class Room { enough, was_asked_for, none };
  // `idle` asks other processes for memory that they do not use; nullptr if other runs are ahead in the queue, so that
  // nobody is asked.
  Room room(class NvmlProcess &devices, IdleMemory *idle);
  static std::string amount_of(const Need &need);
  std::uint64_t overhead_of(const Need &need, const std::vector<ledger::Group> &groups, std::uint64_t not_ours) const;
  void wait(const std::string &longest, const EnvironmentBlock &environment);
  struct Shortage {
    std::string amount, why;
    std::vector<std::int64_t> by;  // the holders and the runs ahead; a change of these is reported
    void take(const std::vector<DeviceHolder> &holders, std::uint64_t used);
  };
  [[nodiscard]] Shortage shortage() const;
  [[nodiscard]] std::vector<DeviceHolder> ahead_of(const std::vector<ledger::Group> &groups) const;
  void share_with_command();

  std::string folder_;
  std::string tree_;  // the tree of all processes that the run starts
  std::unique_ptr<ledger::Membership> place_;
  std::uint64_t identity_ = 0;  // the identity of this process in the group of `place_`
  std::vector<Need> needs_;
  Shortage scarce_;                  // as of the last look at the devices; if `amount` is empty, nothing is scarce
  std::vector<DeviceHolder> ahead_;  // as of the last look; `reserved`: the amount for which each run waits
  int inherited_ = -1;               // a descriptor that keeps the place in the queue while the command runs
};

}  // namespace ration::cli
