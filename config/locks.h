// Locks the settings on which locked keys depend, so that no other setting undoes a lock. Finds locks that can be
// evaded.
// Layer: config. Threads: values.
#pragma once

#include <string>
#include <vector>

#include "config/settings_context.h"

namespace ration::config {

// Call once, with the statements of all sources, strongest first. Locks what each locked key needs: a limit needs
// `managed=limit`, a group limit needs the group, and a group or container limit needs the folder that the members
// share (`state_dir`).
// Design: design/settings.md#locks
void lock_what_locks_need(std::vector<Statement> &statements);

// True if an environment variable makes the program number its devices differently from the system.
bool renumbers_devices(const char *const *environment);

// True if the folder of system files contains the file `enforced`, which makes RATION_DISABLE=1 have no effect.
bool is_enforced(const std::string &folder);

// Returns one line for each lock of the file at `path` that a program can escape, judged by that file alone. The file
// `enforced` counts if it is next to that file or in `system_folder`, where a line suggests creating it.
std::vector<std::string> escapable_locks(const FileReading &reading, const std::string &path,
                                         const std::string &system_folder);

}  // namespace ration::config
