// The exit statuses of `ration` that are not the command's own, as docker run and env(1) have them. Layer: cli.
#pragma once

namespace ration::cli {

inline constexpr int kProblemSeen = 1;  // of a verb that looks: what it shows is not all that there is
inline constexpr int kOurError = 125;   // a bad option or setting, a limit that could not hold: nothing was started
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kKilled = 128;  // + the signal

}  // namespace ration::cli
