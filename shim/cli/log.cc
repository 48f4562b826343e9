#include "cli/log.h"

#include <unistd.h>

#include <string>

namespace ration::cli {

void log_line(std::string_view line) {
  // One write, so that lines of several processes on one terminal do not mix.
  std::string text = "ration: ";
  text += line;
  text += '\n';
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = write(STDERR_FILENO, rest.data(), rest.size());
    if (written <= 0) {
      return;  // a lost message must not change an exit status
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace ration::cli
