// One look in Prometheus' text exposition format, version 0.0.4
// (prometheus.io, "Exposition formats": a family's lines stand together, no series twice, values of labels are UTF-8).
// Layer: cli. Threads: pure function.
#pragma once

#include <cstdint>
#include <string>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// A pid names one process only inside its PID namespace: series of processes outside `own_pid_namespace` also have the
// label `pid_namespace`. Every family has its HELP and TYPE, also where it has no series.
std::string prometheus_text(const Usage &usage, std::uint64_t own_pid_namespace);

}  // namespace ration::cli
