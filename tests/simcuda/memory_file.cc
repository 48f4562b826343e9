#include "tests/simcuda/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <utility>

namespace simcuda {
namespace {

constexpr std::uint64_t kFileBytes = std::uint64_t{1} << 60;  // sparse; its places are never reused

struct flock lock_on(short type, std::uint64_t offset) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = 1;
  return lock;
}

int open_again(int descriptor) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  return ::open(path, O_RDWR | O_CLOEXEC);
}

bool identify(MemoryFile *file) {
  struct stat status = {};
  if (::fstat(file->descriptor, &status) != 0) return false;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  return true;
}

}  // namespace

MemoryFile::~MemoryFile() {
  if (descriptor >= 0) ::close(descriptor);
}

MemoryFileRef own_memory_file() {
  static MemoryFileRef *own = nullptr;  // never closed: late work of streams uses it
  if (own != nullptr) return *own;
  auto made = std::make_shared<MemoryFile>();
  made->descriptor = ::memfd_create("simcuda-physical", MFD_CLOEXEC);
  if (made->descriptor < 0 || ::ftruncate(made->descriptor, static_cast<off_t>(kFileBytes)) != 0 ||
      !identify(made.get())) {
    return nullptr;
  }
  own = new MemoryFileRef(std::move(made));
  return *own;
}

bool take_place(std::uint64_t bytes, std::uint64_t *offset) {
  static std::uint64_t used = 0;
  if (bytes > kFileBytes - used) return false;
  *offset = used;
  used += bytes;
  return true;
}

MemoryFileRef memory_file_of(int exported) {
  static auto *known = new std::map<std::pair<dev_t, ino_t>, std::weak_ptr<MemoryFile>>;
  struct stat status = {};
  if (::fstat(exported, &status) != 0) return nullptr;
  if (const MemoryFileRef own = own_memory_file();
      own != nullptr && own->device == status.st_dev && own->inode == status.st_ino) {
    return own;
  }
  std::weak_ptr<MemoryFile> &place = (*known)[{status.st_dev, status.st_ino}];
  if (MemoryFileRef file = place.lock()) return file;
  auto made = std::make_shared<MemoryFile>();
  made->descriptor = open_again(exported);
  if (made->descriptor < 0 || !identify(made.get())) return nullptr;
  place = made;
  return made;
}

int export_description(const MemoryFile &file, std::uint64_t offset) {
  const int made = open_again(file.descriptor);
  struct flock shared = lock_on(F_RDLCK, offset);
  if (made < 0 || (::lseek(made, static_cast<off_t>(offset), SEEK_SET) == static_cast<off_t>(offset) &&
                   ::fcntl(made, F_OFD_SETLK, &shared) == 0)) {
    return made;
  }
  ::close(made);
  return -1;
}

bool position_of(int exported, std::uint64_t *offset) {
  const off_t found = ::lseek(exported, 0, SEEK_CUR);
  *offset = static_cast<std::uint64_t>(found);
  return found >= 0;
}

void *keep_description(int exported, std::uint64_t offset) {
  void *const kept = ::mmap(nullptr, kLabelBytes, PROT_READ, MAP_SHARED, exported, static_cast<off_t>(offset));
  if (kept == MAP_FAILED) return nullptr;
  ::madvise(kept, kLabelBytes, MADV_DONTFORK);
  return kept;
}

void drop_description(void *kept) {
  ::munmap(kept, kLabelBytes);
}

bool is_exported(const MemoryFile &file, std::uint64_t offset) {
  struct flock any = lock_on(F_WRLCK, offset);
  return ::fcntl(file.descriptor, F_OFD_GETLK, &any) != 0 || any.l_type != F_UNLCK;
}

}  // namespace simcuda
