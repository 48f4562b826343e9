#include "cli/usage/top_help.h"

namespace ration::cli {

std::vector<std::string> help_lines(bool is_unicode) {
  return {"Keys",
          "  r u l k K     sort by RESERVED USED LIMIT PEAKRES PEAKUSED",
          "  f a p n       sort by FAILS AGE PID USER",
          "  d g c         sort by GPU GROUP COMMAND",
          is_unicode ? "                the same key again reverses: \u25bc largest first"
                     : "                the same key again reverses: > largest first",
          "  /             show only rows with a text in a name or PID;",
          "                Enter keeps the filter, Esc clears it",
          "  up down       choose a row, as Page Up and Page Down",
          "  Tab           of which table: processes, groups, GPUs;",
          "                4-9/12 are the rows shown, * marks its title",
          "  L x           set its limit, send it a signal: both ask",
          "  space         pause, and go on",
          "  q             quit",
          is_unicode ? "Bars: \u2588 used, \u2592 reserved, \u2591 half a cell, \u00d7 others"
                     : "Bars: # used, = reserved, - half a cell, x others",
          "RESERVED  held on the device, counted against limits",
          "USED      held by the program, of that",
          "PEAKRES   most that was RESERVED; PEAKUSED: most USED",
          "FAILS     refused allocations; PIECES: of memory in pools",
          "others    held outside Ration, for each device",
          "GUARANTEE what its group always leaves to it",
          "CLAIMED   held or guaranteed; FREE: what the limit leaves",
          is_unicode ? "WAITS     what it waits for; \u2582\u2585\u2583: what a GPU held lately"
                     : "WAITS     what it waits for"};
}

}  // namespace ration::cli
