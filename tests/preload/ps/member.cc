// member LIMIT[,GROUP_LIMIT] UUID=BYTES... GROUP...: a member of groups, without a device. It joins the groups ("none",
// "named=NAME", "tree=NUMBER") of RATION_STATE_DIR, charges the bytes to each, publishes one refusal by the group,
// prints "ready" and runs until its stdin ends. LIMIT 0: none.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ledger/membership.h"

using namespace ration::ledger;

namespace {

std::unique_ptr<Membership> join(const std::string &group, const ProcessIdentity &process) {
  const std::string name = group.find('=') == std::string::npos ? "" : group.substr(group.find('=') + 1);
  const GroupKind kind = group == "none"                ? GroupKind::kNone
                         : group.rfind("tree=", 0) == 0 ? GroupKind::kTree
                                                        : GroupKind::kNamed;
  std::string problem;
  std::unique_ptr<Membership> joined = Membership::join(std::getenv("RATION_STATE_DIR"), kind, name, process, problem);
  if (joined == nullptr) {
    std::fprintf(stderr, "member: %s\n", problem.c_str());
    std::exit(1);
  }
  return joined;
}

std::uint64_t number_in(const char *text) {
  return std::strtoull(text, nullptr, 10);
}

void take(Membership &group, const char *device_and_bytes, const char *limits) {
  const char *equals = std::strchr(device_and_bytes, '=');
  const std::uint64_t bytes = number_in(equals + 1);
  const int device = group.device(std::string(device_and_bytes, equals), 0);
  if (number_in(limits) != 0) {
    group.show_limit(device, number_in(limits));
  }
  if (const char *comma = std::strchr(limits, ','); comma != nullptr) {
    group.state_limit(device, number_in(comma + 1));
  }
  if (group.reserve(device, bytes, false) != ReserveOutcome::granted) {
    std::fprintf(stderr, "member: %s refused\n", device_and_bytes);
    std::exit(1);
  }
  Published figures;
  figures.used = bytes / 2;
  figures.allocations = 3;
  figures.failures = {0, 1, 0, 0, 0};
  group.publish(device, figures);
}

}  // namespace

int main(int argc, char **argv) {
  const ProcessIdentity process = this_process();
  std::vector<std::unique_ptr<Membership>> groups;
  for (int i = 2; i < argc; ++i) {
    if (std::strncmp(argv[i], "GPU-", 4) != 0) {
      groups.push_back(join(argv[i], process));
    }
  }
  for (int i = 2; i < argc; ++i) {
    for (const auto &group : groups) {
      if (std::strncmp(argv[i], "GPU-", 4) == 0) {
        take(*group, argv[i], argv[1]);
      }
    }
  }
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
