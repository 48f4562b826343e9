// `ration run --group-tree[=LIMIT]`: creates one group for all processes that the run starts. Layer: cli.
#pragma once

#include <string>
#include <string_view>

#include "cli/launch/environment_block.h"

namespace ration::cli {

// A new tree's number: 16 random hexadecimal digits, unique across hosts. Empty if the kernel returned no random bytes.
std::string new_tree_number();

struct TreeRequest {
  std::string limit;             // the text after the "="; empty: no limit
  bool group_limit_too = false;  // --group-limit is given as well
};

// Appends the tree to RATION_GROUP_TREE, so that enclosing trees keep their limits. If the tree has no limit of its own
// and no named group uses RATION_GROUP_LIMIT, the tree takes the limit from that variable. The variable is then unset,
// because nested trees would read it as well. REQUIRES: `environment` was read without an error. Returns what is wrong
// with the request; empty if it is valid.
// Design: design/groups.md#trees
std::string add_group_tree(const TreeRequest &request, std::string_view number, EnvironmentBlock &environment);

}  // namespace ration::cli
