#include "cli/usage/terminal_type.h"

#include <curses.h>
#include <term.h>
#include <unistd.h>

namespace ration::cli {

// newterm alone would do, but for a type that it does not know it never frees what it made.
bool terminal_has_places() {
  int error = 0;
  if (setupterm(nullptr, STDOUT_FILENO, &error) != OK) {
    return false;
  }
  const bool has_places = cursor_address != nullptr;
  del_curterm(cur_term);
  return has_places;
}

}  // namespace ration::cli
