// What the keys that a system file locks need, so that no other setting lifts them, and the locks that cannot hold.
// Layer: config. Threads: values.
#pragma once

#include <string>
#include <vector>

#include "config/settings_context.h"

namespace ration::config {

// Call once, with the statements of every source, strongest first. Locks what the locked ones need: of a limit that
// managed memory counts, of a group's limit the group, of a group or a container's limit the folder where the members
// meet.
void lock_what_locks_need(std::vector<Statement> &statements);

// Whether a variable makes the program count its devices in another order than the system does.
bool renumbers_devices(const char *const *environment);

// One line for each lock of a file that a program can escape; the file itself is valid.
std::vector<std::string> escapable_locks(const FileReading &reading);

}  // namespace ration::config
