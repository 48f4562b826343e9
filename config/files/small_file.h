// Reads a file of settings whole, whatever kind of file its name refers to: never blocks, never reads more than 1 MiB.
// Layer: config. Threads: any.
#pragma once

#include <string>
#include <vector>

namespace ration::config {

// Required owner. As with ssh, the user's own file must belong to the user or root and not be writable by others,
// because its settings name files that are then written with the user's rights. A file named explicitly (ssh -F) is
// trusted, and a user who can write below /etc can do worse.
// Design: design/settings.md#trusted-files
enum class Trust { kOwnersOnly, kAnybody };

struct SmallFile {
  bool there = false;  // false: no such file
  std::string text;
  std::string wrong;  // why an existing file cannot be used; one line
};

SmallFile read_small_file(const std::string &path, Trust trust);

struct Folder {
  std::vector<std::string> names;  // of *.json, sorted by their bytes; hidden files are an editor's
  std::string wrong;
};

// A folder that does not exist is empty.
Folder list_json_files(const std::string &path);

}  // namespace ration::config
