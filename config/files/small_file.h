// Reads a whole settings file. Whatever kind of file the name refers to, the read never blocks or exceeds 1 MiB.
// Layer: config. Threads: any.
#pragma once

#include <string>
#include <vector>

namespace ration::config {

// Who must own a file. As with ssh, the user's own file must belong to the user or root and must not be writable by
// others, because its settings name files that are then written with the user's rights. A file that is named explicitly
// is trusted (like ssh -F). A file below /etc is trusted too, because a user who can write there can do worse.
// Design: design/settings.md#trusted-files
enum class Trust { kOwnersOnly, kAnybody };

struct SmallFile {
  bool there = false;  // true if the file exists
  std::string text;
  std::string wrong;  // why an existing file cannot be used; one line
};

SmallFile read_small_file(const std::string &path, Trust trust);

struct Folder {
  std::vector<std::string> names;  // the *.json files, sorted bytewise; without hidden files, which an editor may leave
  std::string wrong;
};

// Returns an empty result for a folder that does not exist.
Folder list_json_files(const std::string &path);

}  // namespace ration::config
