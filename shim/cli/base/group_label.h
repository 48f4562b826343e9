// How a group of processes is named to people and in JSON. Layer: cli. Threads: pure functions.
#pragma once

#include <string>

#include "config/settings.h"
#include "ledger/group_view.h"

namespace ration::cli {

// The ledger's kind of a group that the settings name.
ledger::GroupKind kind_of(config::Settings::Group::Kind kind);

// A group's displayed name: for a tree "tree:" and the first eight digits of its number, for a container "container:"
// and its name, "-" for no group.
std::string label_of(ledger::GroupKind kind, const std::string &name);

// As JSON has it: "named", "tree", "container", "queue" or "none".
const char *kind_name(ledger::GroupKind kind);

}  // namespace ration::cli
