#include "tests/simcuda/machine_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace simcuda {
namespace {

constexpr off_t kFirstLock = off_t{1} << 40;  // locks may lie past the end of a file
constexpr off_t kLayoutLock = kFirstLock - 1;

bool lock(int descriptor, int command, off_t at, short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = at;
  range.l_len = 1;
  int outcome = -1;
  do {
    outcome = ::fcntl(descriptor, command, &range);
  } while (outcome != 0 && errno == EINTR);
  return outcome == 0;
}

// FNV-1a: one machine folder always has the same devices; another folder has others.
std::uint64_t hash(const std::string &text) {
  std::uint64_t value = 0xcbf29ce484222325ull;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return value;
}

std::string real_folder(const std::string &folder) {
  char *resolved = folder.empty() ? nullptr : ::realpath(folder.c_str(), nullptr);
  std::string path = resolved == nullptr ? folder : resolved;
  ::free(resolved);
  return path;
}

}  // namespace

MachineFile MachineFile::open(const std::string &path, bool create) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
  if (create && file >= 0) {
    ::fchmod(file, 0600);  // whatever the umask of the first process takes
  }
  return MachineFile(file);
}

MachineFile::~MachineFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool MachineFile::lock_slot(unsigned slot) {
  return lock(descriptor_, F_OFD_SETLK, kFirstLock + slot, F_WRLCK);
}
void MachineFile::unlock_slot(unsigned slot) {
  lock(descriptor_, F_OFD_SETLK, kFirstLock + slot, F_UNLCK);
}

MachinePage *MachineFile::map(const Settings &settings) {
  if (!lock(descriptor_, F_OFD_SETLKW, kLayoutLock, F_WRLCK)) return nullptr;
  struct stat status = {};
  void *memory = MAP_FAILED;
  if (::fstat(descriptor_, &status) == 0 && (status.st_size >= static_cast<off_t>(sizeof(MachinePage)) ||
                                             ::ftruncate(descriptor_, static_cast<off_t>(sizeof(MachinePage))) == 0)) {
    memory = ::mmap(nullptr, sizeof(MachinePage), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  }
  auto *page = memory == MAP_FAILED ? nullptr : static_cast<MachinePage *>(memory);
  if (page != nullptr) {
    // A forked child must not keep the parent's lock alive.
    ::madvise(page, sizeof(MachinePage), MADV_DONTFORK);
    if (page->magic == 0) fill_in(page, settings);
    if (page->magic != kMachineMagic || page->version != kMachineVersion) {
      ::munmap(page, sizeof(MachinePage));
      page = nullptr;
    }
  }
  lock(descriptor_, F_OFD_SETLK, kLayoutLock, F_UNLCK);
  return page;
}

void fill_in(MachinePage *page, const Settings &settings) {
  page->version = kMachineVersion;
  page->devices = static_cast<std::uint32_t>(settings.device_bytes.size());
  const std::uint64_t machine = hash(real_folder(settings.machine));
  for (unsigned i = 0; i < page->devices; ++i) {
    page->device[i].bytes = settings.device_bytes[i];
    const std::uint64_t unit = hash(std::to_string(i) + "@" + std::to_string(machine));
    std::memcpy(page->device[i].uuid, &unit, 8);
    std::memcpy(page->device[i].uuid + 8, &machine, 8);
  }
  std::atomic_ref<std::uint64_t>(page->magic).store(kMachineMagic);
}

}  // namespace simcuda
