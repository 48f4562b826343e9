// Compresses the logs of a run that has ended, if the setting asks for it (RATION_LOG=FILE.zst). Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Handles the logs of the processes that left `summaries` in `folder` (RATION_SUMMARY). LOG becomes LOG.zst, and
// LOG.previous becomes LOG.previous.zst; each file is replaced atomically. A file that cannot be compressed is
// unchanged, and one of the returned lines says why. A signal that would end us ends only the compression.
std::vector<std::string> compress_logs(const std::vector<events::Summary> &summaries, const std::string &folder);

}  // namespace ration::cli
