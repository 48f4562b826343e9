// What `ration --version` prints. Layer: cli. In the command alone, so that a commit links nothing else again.
#pragma once

namespace ration::cli {

// ration 0.1.0 (commit 1a2b3c4d5e6f, Release, x86_64, GNU 12.2.0)
const char *version_text();

}  // namespace ration::cli
