#include "events/diagnostics.h"

#include <unistd.h>

#include <string>

#include "base/quiet_write.h"
#include "base/visible.h"

namespace ration::events {

// One write(2), without a lock that a forked child could inherit locked.
void say(std::string_view line) noexcept try {
  const std::string text = "ration: " + visible(line) + '\n';
  write_quietly(STDERR_FILENO, text.data(), text.size());
} catch (...) {  // fails open
}

}  // namespace ration::events
