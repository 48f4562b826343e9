// Checks for programs that judge themselves. They print each failed claim, and the totals at the end.
#pragma once

#include <stdio.h>

namespace preload {

class Checks {
 public:
  void expect(const char *what, bool holds) {
    ++made_;
    held_ += holds ? 1 : 0;
    if (!holds) {
      dprintf(1, "does not hold: %s\n", what);
    }
  }
  // The exit status.
  int done() const {
    dprintf(1, "covered: %d of %d\n", held_, made_);
    return held_ == made_ && made_ > 0 ? 0 : 1;
  }

 private:
  int made_ = 0;
  int held_ = 0;
};

// True if a file of that name is mapped into this process.
inline bool is_mapped(const char *name) {
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[4352];
  bool found = false;
  while (maps != nullptr && !found && fgets(line, sizeof(line), maps) != nullptr) {
    found = __builtin_strstr(line, name) != nullptr;
  }
  if (maps != nullptr) {
    fclose(maps);
  }
  return found;
}

}  // namespace preload
