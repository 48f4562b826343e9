// `ration run --group-tree[=LIMIT]`: a fresh group for everything that the run starts. Layer: cli.
#pragma once

#include <string>
#include <string_view>

#include "cli/run/environment_block.h"

namespace ration::cli {

// A tree's number: 16 hexadecimal digits that no other run has, on this host or another. Empty: the kernel gave none.
std::string fresh_tree_number();

struct TreeRequest {
  std::string limit;         // behind the "="; empty: none
  bool limit_apart = false;  // --group-limit stands on the same line
};

// Appends the tree to RATION_GROUP_TREE: the trees around this run go on holding. Without a limit of its own it takes
// the group limit that no group name claims, out of `environment`, where its variable would speak for other trees too.
// REQUIRES: `environment` was read without a mistake. Returns what is wrong with the request, empty when nothing is.
std::string plant_tree(const TreeRequest &request, std::string_view number, EnvironmentBlock &environment);

}  // namespace ration::cli
