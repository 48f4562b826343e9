#include "core_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link_map.h"

namespace ration::preload {
namespace {

constexpr char kCoreName[] = "libration-core.so";

size_t length(const char *text) {
  size_t n = 0;
  while (text[n] != '\0') {
    ++n;
  }
  return n;
}

// Finds the file that is mapped at `address`. The loader keeps a relative LD_PRELOAD path as it was written, and the
// program may have changed its current folder since; the kernel reports the file's full path.
bool mapped_file(uintptr_t address, char *path) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  char chunk[1024];
  uintptr_t bounds[2] = {0, 0};
  size_t field = 0;   // 0: start, 1: end, 2 and more: the rest of the line
  size_t stored = 0;  // bytes of the path
  bool found = false;
  bool in_path = false;
  for (ssize_t got = read(file, chunk, sizeof(chunk)); got > 0 && !found; got = read(file, chunk, sizeof(chunk))) {
    for (ssize_t i = 0; i < got && !found; ++i) {
      const char c = chunk[i];
      if (c == '\n') {
        found = in_path && bounds[0] <= address && address < bounds[1];
        if (!found) {
          bounds[0] = bounds[1] = 0;
          field = stored = 0;
          in_path = false;
        }
      } else if (field < 2 && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
        bounds[field] = bounds[field] * 16 + static_cast<uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      } else if (field < 2) {
        ++field;
      } else if ((in_path || c == '/') && stored + 1 < kPathMax) {
        in_path = true;
        path[stored++] = c;
      }
    }
  }
  close(file);
  path[stored] = '\0';
  return found;
}

}  // namespace

bool core_path(char *path) {
  const link_map *own = own_map();
  if (own == nullptr || own->l_name == nullptr) {
    return false;
  }
  const size_t own_length = length(own->l_name);
  if (own->l_name[0] == '/' && own_length < kPathMax) {
    for (size_t i = 0; i <= own_length; ++i) {
      path[i] = own->l_name[i];
    }
  } else if (!mapped_file(reinterpret_cast<uintptr_t>(&core_path), path)) {
    return false;
  }
  char *end = path + (base_name(path) - path);
  if (static_cast<size_t>(end - path) + sizeof(kCoreName) > kPathMax) {
    return false;
  }
  for (size_t i = 0; i < sizeof(kCoreName); ++i) {
    end[i] = kCoreName[i];
  }
  return true;
}

bool is_whole_file(const char *path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  ElfW(Ehdr) header;
  struct stat status;
  const bool readable = read(file, &header, sizeof(header)) == sizeof(header) && fstat(file, &status) == 0;
  close(file);
  const auto sections = static_cast<size_t>(header.e_shnum) * header.e_shentsize;
  return readable && header.e_shoff + sections <= static_cast<size_t>(status.st_size);
}

}  // namespace ration::preload
