// The exit statuses of `ration` itself, not of commands. Those from 125 on match docker run and env(1). Layer: cli.
#pragma once

namespace ration::cli {

inline constexpr int kProblemSeen = 1;   // ps and top: something could not be read, so the output is incomplete
inline constexpr int kTroubleFound = 1;  // doctor: at least one finding is trouble
inline constexpr int kDoesNotHold = 1;   // check: a condition is not met; the reasons are on stdout
inline constexpr int kHasGrown = 1;      // diff: a peak has grown by more than --fail-above
inline constexpr int kUsageError = 2;    // every verb but run
inline constexpr int kUnreadable = 2;    // every verb that reads logs: a log could not be read
inline constexpr int kOurError = 125;  // bad option or setting, or a limit that cannot be enforced; nothing was started
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kKilled = 128;  // the signal's number is added

}  // namespace ration::cli
