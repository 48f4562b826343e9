#include "cli/usage/top_help.h"

namespace ration::cli {

std::vector<std::string> help_lines(bool is_unicode) {
  const std::string largest = is_unicode ? "\u25bc" : ">";
  const std::string smallest = is_unicode ? "\u25b2" : "<";
  return {"Keys",
          "  r u l k K     sort by RESERVED USED LIMIT PEAKRES PEAKUSED",
          "  f a p n       sort by FAILS AGE PID USER",
          "  d g c         sort by GPU GROUP COMMAND",
          "                the same key again reverses",
          "                " + largest + " largest first, " + smallest + " smallest first",
          "  /             show only what has a text in its command,",
          "                program, user, group, container or PID;",
          "                Enter keeps the filter, Esc clears it",
          "  up down       scroll, as Page Up and Page Down",
          "  Tab           what they scroll: processes, groups, GPUs;",
          "                4-9/12 are the rows shown, * marks its title",
          "  space         pause, and go on",
          "  q             quit",
          is_unicode ? "Bars: \u2588 used, \u2592 reserved, \u2591 half a cell, of limit or device"
                     : "Bars: # used, = reserved, - half a cell, of limit or device",
          "RESERVED  held on the device, counted against limits",
          "USED      held by the program, of that",
          "PEAKRES   most that was RESERVED; PEAKUSED: most USED",
          "FAILS     refused allocations; GRANULES: pieces of memory",
          "GUARANTEE what its group always leaves to it",
          "CLAIMED   held or guaranteed; FREE: what the limit leaves",
          is_unicode ? "WAITS     what it waits for; \u2582\u2585\u2583: what a GPU held lately"
                     : "WAITS     what it waits for"};
}

}  // namespace ration::cli
