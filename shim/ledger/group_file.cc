#include "ledger/group_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include "base/file_identity.h"
#include "base/open_beyond_streams.h"
#include "ledger/kill_points.h"
#include "ledger/life_byte.h"
#include "ledger/process_identity.h"
#include "ledger/shared_mapping.h"

namespace ration::ledger {
namespace {

using shared::Header;
using shared::Slot;

constexpr char kTemporaryPrefix[] = ".new-";
constexpr int kInterruptions = 1000;

std::size_t bytes_of(std::uint32_t slots) {
  return sizeof(Header) + std::size_t{slots} * sizeof(Slot);
}

// A user that may write to the file can put anything into it, or truncate it under a mapping. This holds for root, too:
// any user could have created its folder in /dev/shm first.
const char *why_untrusted(const struct stat &found) {
  if (found.st_uid != geteuid()) {
    return "it belongs to another user; set RATION_STATE_DIR to a folder of your own";
  }
  return (found.st_mode & (S_IWGRP | S_IWOTH)) != 0
             ? "other users may write to it; run chmod go-w on it, or set RATION_STATE_DIR to a folder of your own"
             : nullptr;
}

std::string header_problem(const Header &header, int descriptor) {
  if (header.magic != shared::kMagic) {
    return "it is not a file of Ration's; move it away";
  }
  if (header.version != shared::kLayoutVersion) {
    const bool newer = header.version > shared::kLayoutVersion;
    return "it was made by " + std::string(newer ? "a newer" : "an older") + " Ration (layout " +
           std::to_string(header.version) + ", this is " + std::to_string(shared::kLayoutVersion) +
           "); let the group's processes end and run `ration ps` of that version, or use one version for all";
  }
  if (header.header_bytes != sizeof(Header) || header.slot_bytes != sizeof(Slot) || header.slots != shared::kSlots ||
      header.devices != shared::kDevices || header.cell_bytes != sizeof(shared::Cell)) {
    return "its header is damaged; let the group's processes end and remove it";
  }
  // The size is read after the count: another process may add a slot at the same time.
  const std::uint32_t ready = header.ready_slots.load(std::memory_order_acquire);
  struct stat found {};
  if (ready > shared::kSlots || fstat(descriptor, &found) != 0 || found.st_size < static_cast<off_t>(bytes_of(ready))) {
    return "it was cut short; let the group's processes end and remove it";
  }
  return {};
}

bool write_header(int descriptor, const std::string &group) {
  alignas(Header) char bytes[sizeof(Header)] = {};
  auto *header = new (bytes) Header{};
  header->magic = shared::kMagic;
  header->version = shared::kLayoutVersion;
  header->header_bytes = sizeof(Header);
  header->slot_bytes = sizeof(Slot);
  header->slots = shared::kSlots;
  header->devices = shared::kDevices;
  header->cell_bytes = sizeof(shared::Cell);
  header->random.store(random_number(), std::memory_order_relaxed);
  group.copy(header->name, sizeof(header->name) - 1);
  for (shared::Device &device : header->device) {
    (void)device.limit.exchange({0, 0}, {kNoLimit, 0});
  }
  at(KillPoint::kFileHeader);
  return pwrite(descriptor, bytes, sizeof(bytes), 0) == static_cast<ssize_t>(sizeof(bytes));
}

}  // namespace

std::string error_text(int error) {
  return std::generic_category().message(error);
}

bool lacks_descriptors() {
  const Descriptor tried(open_beyond_streams(AT_FDCWD, "/", O_PATH));
  return !tried && (errno == EMFILE || errno == ENFILE);
}

int allocate_space(int descriptor, std::size_t begin, std::size_t end) {
  // One byte beyond RLIMIT_FSIZE would raise SIGXFSZ in the program.
  struct rlimit limit {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur) {
    return EFBIG;
  }
  int error = EINTR;  // a program with a fast timer interrupts the call repeatedly
  for (int tries = 0; error == EINTR && tries < kInterruptions; ++tries) {
    error = posix_fallocate(descriptor, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  }
  return error;
}

// Falls back to a link on file systems without RENAME_NOREPLACE.
int claim_name(int folder, const char *temporary, const char *name) {
  if (renameat2(folder, temporary, folder, name, RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return errno;
  }
  return linkat(folder, temporary, folder, name, 0) == 0 ? 0 : errno;
}

std::string temporary_name() {
  char name[sizeof(kTemporaryPrefix) + 16];
  std::snprintf(name, sizeof(name), "%s%016llx", kTemporaryPrefix, static_cast<unsigned long long>(random_number()));
  return name;
}

std::uint32_t GroupFile::slots() const {
  const std::uint32_t ready = header_->ready_slots.load(std::memory_order_acquire);  // pairs with grow()'s release
  const std::uint32_t known = known_slots_.load(std::memory_order_relaxed);
  if (ready <= known || ready > shared::kSlots) {
    return std::min(ready, known);
  }
  if (!ledger::has_pages(header_, bytes_of(ready))) {
    return known;
  }
  known_slots_.store(ready, std::memory_order_relaxed);
  return ready;
}

bool GroupFile::is_cut(int descriptor) const {
  const std::size_t known = bytes_of(known_slots_.load(std::memory_order_relaxed));
  struct stat found {};
  return fstat(descriptor, &found) == 0 && found.st_size < static_cast<off_t>(known);
}

bool GroupFile::has_pages() const {
  if (!ledger::has_pages(header_, bytes_of(known_slots_.load(std::memory_order_relaxed)))) {
    return false;
  }
  (void)slots();  // pages of members that joined since then will be touched too
  return true;
}

GroupFile::~GroupFile() {
  if (header_ != nullptr) {
    munmap(header_, shared::kFileBytes);
  }
}

Descriptor::~Descriptor() {
  if (number_ >= 0) {
    close(number_);
  }
}

GroupFile GroupFile::map(int descriptor, std::string &problem) {
  struct stat found {};
  if (fstat(descriptor, &found) != 0 || found.st_size < static_cast<off_t>(sizeof(Header))) {
    problem = "it is too short for a file of Ration's; move it away";
    return {};
  }
  // Maps the most that the file can grow to. Pages past its current size are never touched.
  void *const mapped = map_shared(descriptor, shared::kFileBytes);
  if (mapped == nullptr) {
    problem = error_text(errno);
    return {};
  }
  GroupFile file(static_cast<Header *>(mapped));
  problem = header_problem(file.header(), descriptor);
  return problem.empty() ? std::move(file) : GroupFile();
}

// True for a private folder that its owner cannot use either: we made it under a umask that removes the owner's
// permissions.
bool lacks_modes(const struct stat &found) {
  return found.st_uid == geteuid() && (found.st_mode & 0077) == 0 && (found.st_mode & 0700) != 0700;
}

// True: the folder was repaired and may be opened.
bool repair_state_folder(const std::string &path) {
  const Descriptor folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!folder || fstat(folder.number(), &found) != 0 || !lacks_modes(found)) {
    return false;
  }
  const std::string itself = "/proc/self/fd/" + std::to_string(folder.number());
  return chmod(itself.c_str(), 0700) == 0;  // fchmod(2) does not take a descriptor of this kind
}

Descriptor open_state_folder(const std::string &path, bool make, std::string &problem) {
  for (int tries = 0; tries < 100; ++tries) {
    Descriptor folder(open_beyond_streams(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    struct stat found {};
    const bool refused = !folder && errno == EACCES;
    if (folder && fstat(folder.number(), &found) == 0) {
      const char *const wrong = why_untrusted(found);
      if (lacks_modes(found)) {  // this process is root, or the owner may read the folder
        fchmod(folder.number(), 0700);
      }
      problem = wrong == nullptr ? "" : wrong;
      return wrong == nullptr ? std::move(folder) : Descriptor();
    }
    if (refused && repair_state_folder(path)) {
      continue;
    }
    if (errno != ENOENT || !make) {
      // For a link, the error is ENOTDIR, as for a file.
      const int error = errno;
      const bool link = lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode);
      problem = error == ENOENT ? "" : link ? "it is a link" : error_text(error);
      return Descriptor();
    }
    at(KillPoint::kFolder);
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      problem = error_text(errno);
      return Descriptor();
    }
  }
  problem = "other processes keep removing it";
  return Descriptor();
}

Descriptor open_group_file(int folder, const std::string &name, std::string &problem) {
  // O_NONBLOCK: if a FIFO has that name, opening it must not hang.
  Descriptor file(open_beyond_streams(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat found {};
  if (!file || fstat(file.number(), &found) != 0) {
    problem = errno == ENOENT ? "" : errno == ELOOP ? "it is a link" : error_text(errno);
    return Descriptor();
  }
  const char *const wrong = S_ISREG(found.st_mode) ? why_untrusted(found) : "it is not a regular file";
  problem = wrong == nullptr ? "" : wrong;
  return wrong == nullptr ? std::move(file) : Descriptor();
}

bool make_group_file(int folder, const std::string &name, const std::string &group, std::string &problem) {
  const std::string temporary = temporary_name();
  at(KillPoint::kFileMade);
  const Descriptor file(open_beyond_streams(folder, temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (!file) {
    problem = errno == ENOENT ? "" : error_text(errno);  // ENOENT: the folder was removed
    return errno == ENOENT;
  }
  fchmod(file.number(), 0600);  // whatever the umask is
  // until the file has its name, no process may think that its maker is dead
  if (lock_all_lives(file.number()) == LifeLock::failed) {
    problem = "its file system has no open-file-description locks";
  }
  at(KillPoint::kFileSpace);
  if (const int error = allocate_space(file.number(), 0, sizeof(Header)); problem.empty() && error != 0) {
    problem = error_text(error);
  }
  if (problem.empty() && !write_header(file.number(), group)) {
    problem = error_text(errno);
  }
  int error = 0;
  if (problem.empty()) {
    // others can then join at once, even if this process is stopped after the rename
    unlock_all_lives(file.number());
    at(KillPoint::kFileNamed);
    error = claim_name(folder, temporary.c_str(), name.c_str());
    if (error != 0 && error != EEXIST && error != ENOENT) {
      problem = error_text(error);
    }
  }
  unlinkat(folder, temporary.c_str(), 0);  // exists only if the name was taken, or was claimed by a link
  return problem.empty();
}

bool grow(const GroupFile &file, int descriptor, std::uint32_t index) {
  at(KillPoint::kSlotSpace);
  std::atomic<std::uint32_t> &ready = file.header().ready_slots;
  std::uint32_t before = ready.load(std::memory_order_acquire);
  if (before > index) {
    return true;
  }
  if (const int error = allocate_space(descriptor, bytes_of(before), bytes_of(index + 1)); error != 0) {
    errno = error;
    return false;
  }
  at(KillPoint::kSlotReady);
  while (before <= index && !ready.compare_exchange_weak(before, index + 1, std::memory_order_release)) {
  }
  return true;
}

bool has_name(int descriptor, int folder, const std::string &name) {
  FileIdentity own;
  struct stat named {};
  return identify(descriptor, own) && fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         own == identity_of(named);
}

bool is_unnamed(int descriptor) {
  struct stat found {};
  return fstat(descriptor, &found) == 0 && found.st_nlink == 0;
}

bool remove_if_dead(int folder, const std::string &name) {
  std::string problem;
  const Descriptor file = open_group_file(folder, name, problem);
  at(KillPoint::kRemoveLock);
  if (!file || lock_all_lives(file.number()) != LifeLock::taken) {
    return false;
  }
  if (!has_name(file.number(), folder, name)) {
    unlock_all_lives(file.number());  // explicitly, because a child that was just forked has the descriptor too
    return false;
  }
  at(KillPoint::kRemove);
  const bool removed = unlinkat(folder, name.c_str(), 0) == 0;
  at(KillPoint::kRemoved);
  return removed;
}

bool is_temporary_name(const std::string &name) {
  return name.compare(0, sizeof(kTemporaryPrefix) - 1, kTemporaryPrefix) == 0;
}

}  // namespace ration::ledger
