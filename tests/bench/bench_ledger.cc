// Cost of a reservation and its release in a group shared between processes, with few and with many registered members,
// compared with the account alone and a mutex. In one process, in turns; the minimum of many rounds.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ledger/ledger.h"
#include "measured.h"
#include "paired.h"
#include "second_thread.h"
#include "unit/events/scratch_folder.h"

using namespace ration::bench;
using namespace ration::ledger;

namespace {

constexpr std::size_t kPairs = 20'000;
constexpr std::uint64_t kBytes = 1 << 20;

// An account in a group with a number of registered members. 0: without a group.
class Group {
 public:
  Group(const std::string &folder, int registered) : name_(std::to_string(registered)) {
    for (int i = 0; i < registered; ++i) {
      std::string problem;
      members_.push_back(Membership::join(folder, GroupKind::kNamed, "of" + name_, this_process(), problem));
      if (members_.back() == nullptr) {
        throw std::runtime_error(problem);
      }
    }
    account_.set_limit(std::uint64_t{1} << 40);
    if (registered > 0) {
      Membership &last = *members_.back();
      last.state_limit(last.device("", 0), std::uint64_t{1} << 40);
      (void)account_.share(&last, 0);
    }
  }
  void measure(Figures &figures) {
    figures.least("registered_" + name_, "ns", ns_each(kPairs, [this] {
                    for (std::size_t i = 0; i < kPairs; ++i) {
                      if (account_.reserve(kBytes) == ReserveOutcome::granted) {
                        account_.release(kBytes);
                      }
                    }
                  }));
  }

 private:
  const std::string name_;
  std::vector<std::unique_ptr<Membership>> members_;
  Account account_;
};

void run(const Arguments &arguments) {
  const SecondThread second_thread;
  pin();
  const ration::test::ScratchFolder folder;
  Group alone(folder.path(), 0), one(folder.path(), 1), many(folder.path(), 1024);
  Figures figures;
  for (int round = 0; round < arguments.rounds; ++round) {
    figures.least("mutex", "ns", mutex_pair_ns(kPairs));
    for (Group *group : {&alone, &one, &many}) {
      group->measure(figures);
    }
  }
  figures.report("ledger", arguments.json);
}

}  // namespace

int main(int count, char **arguments) {
  return run_bench("ledger", count, arguments, 100, run);
}
