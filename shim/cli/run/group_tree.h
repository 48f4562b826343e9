// `ration run --group-tree[=LIMIT]`: a new group for everything that the run starts. Layer: cli.
#pragma once

#include <string>
#include <string_view>

#include "cli/launch/environment_block.h"

namespace ration::cli {

// A tree's number: 16 random hexadecimal digits, unique across hosts. Empty: the kernel returned no random bytes.
std::string new_tree_number();

struct TreeRequest {
  std::string limit;             // after the "="; empty: none
  bool group_limit_too = false;  // --group-limit is on the same line
};

// Appends the tree to RATION_GROUP_TREE, so that enclosing trees keep their limits. A tree without a limit of its own
// takes RATION_GROUP_LIMIT where no group name uses it, and unsets the variable: nested trees would read it too.
// REQUIRES: `environment` was read without a mistake. Returns what is wrong with the request, empty when it is valid.
// Design: design/groups.md#trees
std::string add_group_tree(const TreeRequest &request, std::string_view number, EnvironmentBlock &environment);

}  // namespace ration::cli
