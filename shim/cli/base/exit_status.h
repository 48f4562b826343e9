// The exit statuses of `ration` that are not the command's own; the same as those of docker run and env(1). Layer: cli.
#pragma once

namespace ration::cli {

inline constexpr int kProblemSeen = 1;   // ps and top: something could not be read, so the output is incomplete
inline constexpr int kTroubleFound = 1;  // doctor
inline constexpr int kDoesNotHold = 1;   // check: a condition; the reasons are on stdout
inline constexpr int kHasGrown = 1;      // diff: a peak, by more than --fail-above
inline constexpr int kUsageError = 2;    // of every verb but run
inline constexpr int kUnreadable = 2;    // of every verb that reads logs: no log to read
inline constexpr int kOurError = 125;  // a bad option or setting, a limit that cannot be enforced: nothing was started
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kKilled = 128;  // + the signal

}  // namespace ration::cli
