// The page of `ration report -o`: logs as one HTML file that asks nothing of a network. Layer: logs. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "logs/page/page_log.h"

namespace ration::logs {

// Everything that the page shows, as one JSON document: schema ration.page/1, for the scripts in web/ alone. Texts of
// the logs may hold any bytes; what is no UTF-8 is replaced.
std::string page_json(const std::vector<PageLog> &logs, const Names &names);

// The page with that document in it.
std::string page_html(const std::string &json);

}  // namespace ration::logs
