#include "config/settings.h"

namespace ration::config {

std::string expand_path(std::string_view pattern, long pid, std::string_view host, std::string_view program) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char mark = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    switch (mark) {
      case 'p':
        out += std::to_string(pid);
        break;
      case 'h':
        out += host;
        break;
      case 'n':
        out += program;
        break;
      case '%':
        out += '%';
        break;
      default:
        out += pattern[i];
        continue;  // only the % is copied
    }
    ++i;
  }
  return out;
}

}  // namespace ration::config
