// The names of process groups, in text for people and in JSON. Layer: cli. Threads: pure functions.
#pragma once

#include <string>

#include "config/settings.h"
#include "ledger/group_view.h"

namespace ration::cli {

// Converts a group's kind from the settings' type to the ledger's type.
ledger::GroupKind kind_of(config::Settings::Group::Kind kind);

// A group's displayed name: "tree:" and the first eight digits of the tree's number, "container:" and the container's
// name, or "-" for no group.
std::string label_of(ledger::GroupKind kind, const std::string &name);

// The kind's name in JSON: "named", "tree", "container", "queue" or "none".
const char *kind_name(ledger::GroupKind kind);

}  // namespace ration::cli
