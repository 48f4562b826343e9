// Assigns group limits to groups, from the variables of groups. groups.cc also has their option parsers.
// Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/options.h"
#include "config/settings.h"

namespace ration::config {

bool concerns_groups(const Option &option);

// Where a limit of all processes of the container is stated, and its text, as the name of their group: those that state
// the same share one.
// Design: design/groups.md#containers
std::string container_name(std::string_view stated);

// Adds the group, in the order of `groups`, or its limits to the one of this kind and name.
void add_group(const Settings::Group &group, Settings &settings);

// The limit of all processes of the container that has `value` cannot be read.
void doubt_container_limit(std::string_view value, Settings &settings);

// Adds the groups of `other` to `settings`; of a group that both have, the limits.
void merge_groups(const Settings &other, Settings &settings);

// Call once, after every option has been parsed; `problems` has the errors of each. Finds an owner for every group
// limit.
void resolve_groups(Settings &settings, std::vector<Problem> &problems);
// Reports a guarantee without a group that could give it. Call after resolve_groups().
void check_guarantee(Settings &settings, std::vector<Problem> &problems);

}  // namespace ration::config
