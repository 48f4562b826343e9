// A file of settings, read whole, whatever lies under its name: never blocks, never reads more than 1 MiB.
// Layer: config. Threads: any.
#pragma once

#include <string>
#include <vector>

namespace ration::config {

// Who may have written it. As ssh does: the user's own file must be the user's or root's, and not be writable by
// others, because its settings name files that are then written in the user's name; a file that somebody named
// (ssh -F) is theirs to trust, and who may write below /etc may do worse.
enum class Trust { kOwnersOnly, kAnybody };

struct SmallFile {
  bool there = false;  // false: no such file
  std::string text;
  std::string wrong;  // where it is there and cannot be used; one plain line
};

SmallFile read_small_file(const std::string &path, Trust trust);

struct Folder {
  std::vector<std::string> names;  // of *.json, in the order of their bytes; hidden ones are somebody's editor's
  std::string wrong;
};

// A folder that is not there is empty.
Folder list_json_files(const std::string &path);

}  // namespace ration::config
