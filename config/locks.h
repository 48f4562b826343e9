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
// Design: design/settings.md#locks
void lock_what_locks_need(std::vector<Statement> &statements);

// Whether a variable makes the program count its devices in another order than the system does.
bool renumbers_devices(const char *const *environment);

// Whether the folder of system files has the file `enforced`, with which RATION_DISABLE=1 is not obeyed.
bool is_enforced(const std::string &folder);

// One line for each lock of the file at `path` that a program can escape; the file itself is valid.
std::vector<std::string> escapable_locks(const FileReading &reading, const std::string &path);

}  // namespace ration::config
