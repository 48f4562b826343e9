// Determines which processes belong to one run: those that inherited the same log setting from one ancestor.
// Layer: events (a leaf). The only file that reads /proc. Called from: first use.
#pragma once

#include <string>
#include <vector>

namespace ration::events {

// "PID-STARTTIME" of the topmost ancestor, through an unbroken line of parents, whose environment at its start
// contained every NAME=value of `marks`; of this process if no parent's did. A forked child gets its parent's answer.
// (proc(5): /proc/PID/environ is the environment at exec, /proc/PID/stat fields 4 ppid and 22 starttime in ticks since
// boot.)
// Design: design/log.md#one-log-a-process
std::string process_tree(const std::vector<std::string> &marks);

// argv of this process, and the path of its executable.
std::vector<std::string> command_line();
std::string executable();

}  // namespace ration::events
