#include "cli/usage/terminal_type.h"

#include <curses.h>
#include <term.h>
#include <unistd.h>

namespace ration::cli {

// newterm alone would do, but for an unknown type it leaks its allocations.
bool terminal_has_cursor() {
  int error = 0;
  if (setupterm(nullptr, STDOUT_FILENO, &error) != OK) {
    return false;
  }
  const bool has_cursor = cursor_address != nullptr;
  del_curterm(cur_term);
  return has_cursor;
}

}  // namespace ration::cli
