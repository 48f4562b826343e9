#include "cli/base/file_text.h"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace ration::cli {

std::optional<std::string> file_text(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (file.peek() == EOF) {  // operator<< fails if there is nothing to insert
    return file.is_open() && !file.bad() ? std::optional<std::string>("") : std::nullopt;
  }
  std::ostringstream text;
  return (text << file.rdbuf()) ? std::optional<std::string>(text.str()) : std::nullopt;
}

}  // namespace ration::cli
