// Assigns group limits to groups, from the three variables of groups. groups.cc also has their option parsers.
// Layer: config. Threads: values.
#pragma once

#include <vector>

#include "config/options.h"
#include "config/settings.h"

namespace ration::config {

bool concerns_groups(const Option &option);

// Adds the groups of `other` to `settings`; of a group that both have, the limits.
void merge_groups(const Settings &other, Settings &settings);

// Call once, after every option has been parsed; `problems` has the errors of each. Sorts the groups and finds an owner
// for every group limit.
void resolve_groups(Settings &settings, std::vector<Problem> &problems);
// Reports a guarantee without a group that could give it. Call after resolve_groups().
void check_guarantee(const Settings &settings, std::vector<Problem> &problems);

}  // namespace ration::config
