// Which processes belong to one run: those that inherited the same log setting from one ancestor.
// Layer: events (a leaf). The one file that reads /proc. Called from: first use.
#pragma once

#include <string>
#include <vector>

namespace ration::events {

// "PID-STARTTIME" of the topmost ancestor, through an unbroken line of parents, whose environment at its start held
// every NAME=value of `marks`; this process itself where no parent did. (proc(5): /proc/PID/environ is the environment
// at exec, /proc/PID/stat fields 4 ppid and 22 starttime in ticks since boot.) A forked child has its parent's answer.
std::string process_tree(const std::vector<std::string> &marks);

// argv of this process, and the file that it runs.
std::vector<std::string> command_line();
std::string executable();

}  // namespace ration::events
