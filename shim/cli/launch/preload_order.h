// The entries of LD_PRELOAD, and the position of libration.so among them. Layer: cli. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

// The separators that the dynamic loader accepts in LD_PRELOAD and in /etc/ld.so.preload (ld.so(8)).
inline constexpr std::string_view kBetweenEntries = " :";
inline constexpr std::string_view kBetweenEntriesOfFile = " :\t\n";
std::vector<std::string> entries_of_preload(std::string_view text, std::string_view between = kBetweenEntries);
inline constexpr std::string_view kOurLibrary = "libration.so";
// True if the name of the file, or the name inside it (DT_SONAME), is that of our library.
bool is_our_library(const std::string &path);

// Returns `present` (the value of LD_PRELOAD, separated by blanks or colons, ld.so(8)) with `library` first and no
// other libration.so. libasan goes before `library` if `present` lists it first or the program needs it (`needed` is
// its DT_NEEDED). Otherwise libasan would end the program with "ASan runtime does not come first".
std::string preload_order(std::string_view present, const std::string &library, const std::vector<std::string> &needed);

// Puts `folder` first in a colon-separated list, unless it is already first. Adds no empty item, which would mean ".".
std::string prepend_folder(std::string_view present, const std::string &folder);

}  // namespace ration::cli
