#include "cli/run/group_tree.h"

#include <sys/random.h>

#include <array>

#include "config/values/limit_map.h"

namespace ration::cli {

namespace {

constexpr std::string_view kTree = "RATION_GROUP_TREE";
constexpr std::string_view kGroupLimit = "RATION_GROUP_LIMIT";

}  // namespace

std::string new_tree_number() {
  constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, 8> random{};
  std::string number;
  // No handler is installed, so nothing interrupts the call; up to 256 bytes are never split (getrandom(2)).
  if (getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size())) {
    for (const unsigned char byte : random) {
      number += {kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return number;
}

std::string add_group_tree(const TreeRequest &request, std::string_view number, EnvironmentBlock &environment) {
  std::string limit = request.limit;
  const bool has_name = !environment.value("RATION_GROUP").empty();
  if (!limit.empty()) {
    config::LimitMap ignored;
    if (std::string wrong = config::parse_limit(limit, ignored); !wrong.empty()) {
      return wrong;
    }
    if (request.group_limit_too && !has_name) {
      return "--group-limit sets a second limit for it; name the group of that limit (--group), or leave one out";
    }
  } else if (!has_name) {
    limit = environment.value(kGroupLimit);
    environment.unset(kGroupLimit);
  }
  std::string trees = environment.value(kTree);
  trees += trees.empty() ? "" : ";";
  trees += number;
  trees += limit.empty() ? "" : "=" + limit;
  environment.set(kTree, trees);
  return {};
}

}  // namespace ration::cli
