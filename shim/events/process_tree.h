// Determines which processes belong to one run, that is, inherited the same log setting from the same ancestor.
// Layer: events (a leaf). The only file there that reads /proc. Called from: first use.
#pragma once

#include <string>
#include <vector>

namespace ration::events {

// Identifies a run by "PID-STARTTIME" of its topmost process. Follows the parents upwards as long as the environment
// that each started with contains every NAME=value of `marks`, and takes the last such parent, or this process if its
// parent's environment lacks one of them. A forked child gets its parent's answer. (proc(5): /proc/PID/environ is the
// environment at exec; /proc/PID/stat has the parent in field 4 and the start time, in ticks since boot, in field 22.)
// Design: design/log.md#one-log-a-process
std::string process_tree(const std::vector<std::string> &marks);

// argv of this process, and the path of its executable.
std::vector<std::string> command_line();
std::string executable();

}  // namespace ration::events
