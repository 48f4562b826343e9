#include "cli/base/file_text.h"

#include <fstream>
#include <sstream>

namespace ration::cli {

std::optional<std::string> file_text(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    // An empty file gives nothing, too, and is no error.
    return file.is_open() && !file.bad() && std::ifstream(path).peek() == EOF ? std::optional<std::string>("")
                                                                              : std::nullopt;
  }
  return text.str();
}

}  // namespace ration::cli
