// A snapshot in Prometheus' text exposition format, version 0.0.4 (prometheus.io, "Exposition formats"). The lines of a
// family are adjacent, no series occurs twice, and label values are UTF-8.
// Layer: cli. Threads: pure function.
#pragma once

#include <cstdint>
#include <string>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// A process ID is unique only inside its PID namespace, so the series of processes outside `own_pid_namespace` have the
// additional label `pid_namespace`. Every family has its HELP and TYPE lines, even a family without series.
std::string prometheus_text(const Usage &usage, std::uint64_t own_pid_namespace);

}  // namespace ration::cli
