// Where libration.so goes in LD_PRELOAD. Layer: cli. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

// `present` (LD_PRELOAD as it is, separated by blanks or colons, ld.so(8)) with `library` first and no other
// libration.so. libasan goes before it where it is listed first or the program needs it (`needed`, its DT_NEEDED):
// "ASan runtime does not come first" is fatal there.
std::string preload_order(std::string_view present, const std::string &library, const std::vector<std::string> &needed);

// Puts `folder` first in a colon-separated list unless it is first already. Adds no empty item: that would mean ".".
std::string prepend_folder(std::string_view present, const std::string &folder);

}  // namespace ration::cli
