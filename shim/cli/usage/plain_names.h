// Makes names fit for a terminal without UTF-8. Layer: cli. Threads: pure functions.
#pragma once

#include "cli/usage/process_rows.h"

namespace ration::cli {

// In all names, replaces each byte that is not printable ASCII with \xNN.
void make_plain(Usage &usage);

}  // namespace ration::cli
