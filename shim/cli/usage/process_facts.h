// What /proc and the user database say of processes. Layer: cli. Threads: one. Never fails: what cannot be read is
// unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ration::cli {

// The arguments of a process of this PID namespace, blanks between, cut after 4096 bytes. Empty: unknown.
std::string command_line(int pid);

// Who may signal it.
std::optional<std::uint32_t> owner_of(int pid);

// The user's name, or the number where there is none. Asks once for each.
const std::string &user_name(std::uint32_t uid);

}  // namespace ration::cli
