// Where our library stands in LD_PRELOAD. Layer: cli. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

// `present` (LD_PRELOAD as it is, separated by blanks or colons, ld.so(8)) with `library` in front; behind libasan
// where that stands first or the program needs it (`needed`, its DT_NEEDED): "ASan runtime does not come first" is
// fatal there. An earlier mention of a libration.so goes.
std::string preload_order(std::string_view present, const std::string &library, const std::vector<std::string> &needed);

// Puts `folder` in front of a colon-separated list where it is not there yet. No empty item appears: it would mean ".".
std::string prepend_folder(std::string_view present, const std::string &folder);

}  // namespace ration::cli
