// Messages of `ration` for people: lines on stderr that begin with its name. Layer: cli. Threads: any.
#pragma once

#include <string_view>

namespace ration::cli {

void log_line(std::string_view line);

}  // namespace ration::cli
