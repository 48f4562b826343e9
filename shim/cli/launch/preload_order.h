// The entries of LD_PRELOAD, and where libration.so goes among them. Layer: cli. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

// Between what the dynamic loader separates the entries of the variable, and of the file (ld.so(8)).
inline constexpr std::string_view kBetweenEntries = " :";
inline constexpr std::string_view kBetweenEntriesOfFile = " :\t\n";
std::vector<std::string> entries_of_preload(std::string_view text, std::string_view between = kBetweenEntries);
inline constexpr std::string_view kOurLibrary = "libration.so";
// By its name, or by what the file says of itself.
bool is_our_library(const std::string &path);

// `present` (LD_PRELOAD as it is, separated by blanks or colons, ld.so(8)) with `library` first and no other
// libration.so. libasan goes before it where it is listed first or the program needs it (`needed`, its DT_NEEDED):
// "ASan runtime does not come first" is fatal there.
std::string preload_order(std::string_view present, const std::string &library, const std::vector<std::string> &needed);

// Puts `folder` first in a colon-separated list unless it is first already. Adds no empty item: that would mean ".".
std::string prepend_folder(std::string_view present, const std::string &folder);

}  // namespace ration::cli
