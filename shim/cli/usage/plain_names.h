// Names for a terminal that has no UTF-8. Layer: cli. Threads: pure functions.
#pragma once

#include "cli/usage/process_rows.h"

namespace ration::cli {

// What is no printable ASCII in them is \xNN.
void make_plain(Usage &usage);

}  // namespace ration::cli
