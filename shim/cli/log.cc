#include "cli/log.h"

#include <unistd.h>

#include <string>

namespace ration::cli {

void say(std::string_view line) {
  // One write: lines of several processes on one terminal stay whole.
  std::string text = "ration: ";
  text += line;
  text += '\n';
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = write(STDERR_FILENO, rest.data(), rest.size());
    if (written <= 0) {
      return;  // nobody listens, which is no reason to change an exit status
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace ration::cli
