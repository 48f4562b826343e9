// What the walk says of a command line, in a few words, for its tests. Threads: one.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.h"
#include "cli/launch/command_walk.h"

namespace ration::cli {

using Line = std::vector<std::string>;

inline const Library kLibrary{"/x/libration.so", "/x/libration-core.so", "/x/sim"};

inline CommandWalk walk(const Line &words) {
  const char *const own[] = {"LD_PRELOAD=/x/libration.so", "RATION_LIMIT=4GiB", "PATH=/usr/bin:/bin", nullptr};
  return walk_command(words, EnvironmentBlock(own), kLibrary);
}

inline std::string lost_by(const Line &words) {
  const CommandWalk found = walk(words);
  return found.loss ? found.loss->name : "";
}

inline Line changes_of(const Line &words) {
  Line sentences;
  for (const CommandWalk::Change &each : walk(words).changes) {
    sentences.push_back(said(each));
  }
  return sentences;
}

// What a line may lose; empty if it keeps the library, or certainly loses it.
inline std::string suspected_of(const Line &words) {
  const CommandWalk found = walk(words);
  const auto loss = loss_of_limit(found, kLibrary);
  return loss && !loss->is_certain ? loss->name + " " + loss->reason : "";
}

inline bool is_lost(const Line &words) {
  const auto loss = loss_of_limit(walk(words), kLibrary);
  return loss && loss->is_certain;
}

inline bool is_kept(const Line &words) {
  return !loss_of_limit(walk(words), kLibrary);
}

// A folder with scripts.
class Scripts {
 public:
  Scripts() { REQUIRE(mkdtemp(folder_.data()) != nullptr); }
  ~Scripts() { std::filesystem::remove_all(folder_); }
  Scripts(const Scripts &) = delete;
  Scripts &operator=(const Scripts &) = delete;

  std::string write(const std::string &text, const std::string &name = "script") const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    REQUIRE(chmod(path.c_str(), 0755) == 0);
    return path;
  }

 private:
  std::string folder_ = "/tmp/ration-walk-test-XXXXXX";
};

inline Line program_of(const Line &words) {
  return walk(words).stages.back().words;
}

}  // namespace ration::cli
