// Assigns the group limits in the settings to the groups. groups.cc also has the option parsers of groups.
// Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/options.h"
#include "config/settings.h"

namespace ration::config {

bool concerns_groups(const Option &option);

// The name of the group of all processes of a container: a hash of `stated`, which is the source and the text of their
// limit. So processes that state the same limit share one group.
// Design: design/groups.md#containers
std::string container_name(std::string_view stated);

// Adds the group at its place in the order of `groups`. If `settings` already has a group of this kind and name, adds
// the limits to that group.
void add_group(const Settings::Group &group, Settings &settings);

// Notes that the container's limit, `value`, cannot be parsed.
void doubt_container_limit(std::string_view value, Settings &settings);

// Adds the groups of `other` to `settings`. If both contain the same group, its limits are combined.
void merge_groups(const Settings &other, Settings &settings);

// Assigns every group limit to a group or to this process. Call once, after every option has been parsed, when
// `problems` already holds the errors in all options.
void resolve_groups(Settings &settings, std::vector<Problem> &problems);
// Reports a guarantee as a problem if there is no group that could give it. Call after resolve_groups().
void check_guarantee(Settings &settings, std::vector<Problem> &problems);

}  // namespace ration::config
