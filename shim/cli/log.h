// What `ration` says to people: stderr, one line at a time, each with its name in front. Layer: cli.
#pragma once

#include <string_view>

namespace ration::cli {

void say(std::string_view line);

}  // namespace ration::cli
