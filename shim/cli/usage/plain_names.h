// Names for a terminal without UTF-8. Layer: cli. Threads: pure functions.
#pragma once

#include "cli/usage/process_rows.h"

namespace ration::cli {

// Replaces each byte in names that is not printable ASCII by \xNN.
void make_plain(Usage &usage);

}  // namespace ration::cli
