// The text of `ration --version`. Layer: cli. Only the command includes it, so a new commit relinks nothing else.
#pragma once

namespace ration::cli {

// For example "ration 0.1.0 (commit 1a2b3c4d5e6f, Release, x86_64, GNU 12.2.0)".
const char *version_text();

}  // namespace ration::cli
