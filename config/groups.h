// Which limit belongs to which group: what the three variables of groups say together. options.inc's readers of groups
// are in groups.cc too. Layer: config. Threads: values.
#pragma once

#include <vector>

#include "config/options.h"
#include "config/settings.h"

namespace ration::config {

bool concerns_groups(const Option &option);

// Adds to the groups of `settings` those of `other`, or their limits where it has them already.
void hold_groups_of(const Settings &other, Settings &settings);

// Call once, when every option is read and `problems` says what was wrong with each: puts the groups in order and finds
// an owner for every limit.
void settle_groups(Settings &settings, std::vector<Problem> &problems);

}  // namespace ration::config
