// Compresses the logs of a run that has ended, if their setting asks for that (RATION_LOG=FILE.zst). Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Serves the processes that left `summaries` in `folder` (RATION_SUMMARY). LOG becomes LOG.zst, and LOG.previous
// becomes LOG.previous.zst; each file is replaced atomically. A file that cannot be compressed stays as it is, and one
// of the returned lines says why. A signal that would end us only ends the compression.
std::vector<std::string> compress_logs(const std::vector<events::Summary> &summaries, const std::string &folder);

}  // namespace ration::cli
