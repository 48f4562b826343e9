// Facts about processes from /proc and the user database. Layer: cli. Threads: one. Never fails: a fact that cannot be
// read counts as unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ration::cli {

// The arguments of a process in this PID namespace, separated by blanks and cut off after 4096 bytes. Empty if unknown.
std::string command_line(int pid);

// The user ID that may signal the process.
std::optional<std::uint32_t> owner_of(int pid);

// The user's name, or the number if there is no name. Looks up each user only once.
const std::string &user_name(std::uint32_t uid);

}  // namespace ration::cli
