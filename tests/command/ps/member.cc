// member LIMIT[,GROUP_LIMIT] UUID=BYTES... GROUP... [for=NUMBER]: a member of groups, without a device. It joins the
// groups ("none", "named=NAME", "tree=NUMBER") of RATION_STATE_DIR, charges the bytes to each, publishes one refusal by
// the group, prints "ready" and runs until its stdin ends. LIMIT 0: none. With "for" it holds nothing: the bytes are
// guaranteed to that tree. Each device has 16 GiB; half of the bytes are used, three quarters of them were.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ledger/membership.h"

using namespace ration::ledger;

namespace {

std::unique_ptr<Membership> join(const std::string &group, const ProcessIdentity &process, const Trees &trees) {
  const std::string name = group.find('=') == std::string::npos ? "" : group.substr(group.find('=') + 1);
  const GroupKind kind = group == "none"                ? GroupKind::kNone
                         : group.rfind("tree=", 0) == 0 ? GroupKind::kTree
                                                        : GroupKind::kNamed;
  std::string problem;
  std::unique_ptr<Membership> joined = Membership::join(std::getenv("RATION_STATE_DIR"), kind, name, process, problem,
                                                        kind == GroupKind::kNamed ? trees : Trees{});
  if (joined == nullptr) {
    std::fprintf(stderr, "member: %s\n", problem.c_str());
    std::exit(1);
  }
  return joined;
}

std::uint64_t number_in(const char *text) {
  return std::strtoull(text, nullptr, 10);
}

Trees trees_among(char **arguments) {
  Trees trees;
  for (; *arguments != nullptr; ++arguments) {
    const std::string argument = *arguments;
    const std::string number = argument.substr(argument.find('=') + 1);
    if (argument.rfind("tree=", 0) == 0) {
      trees.within.push_back(tree_number(GroupKind::kTree, number));
    } else if (argument.rfind("for=", 0) == 0) {
      trees.held_for = tree_number(GroupKind::kTree, number);
    }
  }
  return trees;
}

void take(Membership &group, const char *device_and_bytes, const char *limits, bool only_guarantees) {
  const char *equals = std::strchr(device_and_bytes, '=');
  const std::uint64_t bytes = number_in(equals + 1);
  const int device = group.device(std::string(device_and_bytes, equals), 0);
  group.show_total(device, std::uint64_t{16} << 30U);
  if (number_in(limits) != 0) {
    group.show_limit(device, number_in(limits));
  }
  if (const char *comma = std::strchr(limits, ','); comma != nullptr) {
    group.state_limit(device, number_in(comma + 1));
  }
  const ReserveOutcome outcome =
      only_guarantees ? group.guarantee(device, bytes, false) : group.reserve(device, bytes, false);
  if (outcome != ReserveOutcome::granted) {
    std::fprintf(stderr, "member: %s refused\n", device_and_bytes);
    std::exit(1);
  }
  if (only_guarantees) {
    return;
  }
  Published figures;
  figures.used = bytes / 2;
  figures.peak_used = bytes / 4 * 3;
  figures.allocations = 3;
  figures.failures = {0, 1, 0, 0, 0};
  group.publish(device, figures);
}

}  // namespace

int main(int argc, char **argv) {
  const ProcessIdentity process = this_process();
  const Trees trees = trees_among(argv);
  std::vector<std::unique_ptr<Membership>> groups;
  for (int i = 2; i < argc; ++i) {
    if (std::strncmp(argv[i], "GPU-", 4) != 0 && std::strncmp(argv[i], "for=", 4) != 0) {
      groups.push_back(join(argv[i], process, trees));
    }
  }
  for (int i = 2; i < argc; ++i) {
    for (const auto &group : groups) {
      if (std::strncmp(argv[i], "GPU-", 4) == 0) {
        take(*group, argv[i], argv[1], trees.held_for != 0);
      }
    }
  }
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
