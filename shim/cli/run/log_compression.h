// Compresses the logs of a run that has ended, where their setting asks for that (RATION_LOG=FILE.zst). Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Of the processes that left `summaries` in `folder` (RATION_SUMMARY): LOG becomes LOG.zst, and LOG.previous becomes
// LOG.previous.zst, each at once and whole. What cannot be compressed stays as it is: a line says why. A signal that
// would end us ends the compression only.
std::vector<std::string> compress_logs(const std::vector<events::Summary> &summaries, const std::string &folder);

}  // namespace ration::cli
