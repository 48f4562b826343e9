#include "logs/reader/log_names.h"

#include <sys/stat.h>

#include "config/settings.h"

namespace ration::logs {
namespace {

bool is_there(const std::string &path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

}  // namespace

std::string present_log(const std::string &path) {
  const std::string plain = config::plain_log(path);
  const std::string compressed = plain + config::kCompressedLog;
  const std::string begun = plain + ".new";
  if (is_there(path)) {
    return path;
  }
  for (const std::string &name : {plain, compressed}) {
    if (is_there(name)) {
      return name;
    }
  }
  // The reader finds the previous part by the first line of the new part.
  return is_there(begun) && is_there(plain + ".previous") ? begun : path;
}

std::array<std::string, 2> names_of_previous(const std::string &path) {
  const std::string previous = config::plain_log(path) + ".previous";
  return {previous, previous + config::kCompressedLog};
}

}  // namespace ration::logs
