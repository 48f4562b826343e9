// The JSON document inside the page that `ration report -o` writes. Layer: logs. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "logs/page/page_log.h"

namespace ration::logs {

// Everything that the page shows, as one JSON document: schema ration.page/1, used only by the scripts in web/. Strings
// in logs may contain any bytes; bytes that are not UTF-8 are replaced.
std::string page_json(const std::vector<PageLog> &logs, const Names &names);

}  // namespace ration::logs
