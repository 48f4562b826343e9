// How a group of processes is named to people and in JSON. Layer: cli. Threads: pure functions.
#pragma once

#include <string>

#include "ledger/group_view.h"

namespace ration::cli {

// A group's displayed name: for a tree "tree:" and the first eight digits of its number, for a container "container:"
// and its name, "-" for no group.
std::string label_of(ledger::GroupKind kind, const std::string &name);

// As JSON has it: "named", "tree", "container", "queue" or "none".
const char *kind_name(ledger::GroupKind kind);

}  // namespace ration::cli
