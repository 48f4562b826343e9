#include "cli/version.h"

namespace ration::cli {

// commit.inc: "commit 1a2b3c4d5e6f, ", or an empty string if no commit is known.
const char *version_text() {
  return "ration " RATION_VERSION " ("
#include "commit.inc"
      RATION_BUILD ")";
}

}  // namespace ration::cli
