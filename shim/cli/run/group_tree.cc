#include "cli/run/group_tree.h"

#include <sys/random.h>

#include <array>
#include <cerrno>

#include "config/limit_map.h"

namespace ration::cli {

namespace {

constexpr std::string_view kTree = "RATION_GROUP_TREE";
constexpr std::string_view kGroup = "RATION_GROUP";
constexpr std::string_view kGroupLimit = "RATION_GROUP_LIMIT";

std::string value_of(const EnvironmentBlock &environment, std::string_view name) {
  const char *value = environment.find(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string fresh_tree_number() {
  constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, 8> random{};
  ssize_t got = -1;
  do {
    got = getrandom(random.data(), random.size(), 0);  // up to 256 bytes come whole (getrandom(2))
  } while (got < 0 && errno == EINTR);
  std::string number;
  if (got == static_cast<ssize_t>(random.size())) {
    for (const unsigned char byte : random) {
      number += {kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return number;
}

std::string plant_tree(const TreeRequest &request, std::string_view number, EnvironmentBlock &environment) {
  std::string limit = request.limit;
  const bool named = !value_of(environment, kGroup).empty();
  if (!limit.empty()) {
    config::LimitMap read;
    if (std::string wrong = config::parse_limit(limit, read); !wrong.empty()) {
      return wrong;
    }
    if (request.limit_apart && !named) {
      return "--group-limit gives it a second limit; name the group of that one (--group), or leave one out";
    }
  } else if (!named) {
    limit = value_of(environment, kGroupLimit);
    environment.unset(kGroupLimit);
  }
  std::string trees = value_of(environment, kTree);
  trees += trees.empty() ? "" : ";";
  trees += number;
  trees += limit.empty() ? "" : "=" + limit;
  environment.set(kTree, trees);
  return {};
}

}  // namespace ration::cli
