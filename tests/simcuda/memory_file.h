// The one file that contains all physical memory of a process. One file for each handle would exhaust the process's
// descriptors, because a device has thousands of granules. Memory that may be exported has a page with a label before
// it. An export opens a new file description, which is positioned at the label and holds a lock on it. The memory lives
// as long as this description, that is, while any process has a descriptor of it, or one is being sent.
// Layer: none. Threads: under Driver::mutex. Owns: its descriptor.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>

namespace simcuda {

struct MemoryFile {
  int descriptor = -1;
  dev_t device = 0;
  ino_t inode = 0;

  MemoryFile() = default;
  ~MemoryFile();
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
};
using MemoryFileRef = std::shared_ptr<MemoryFile>;

inline constexpr std::uint64_t kLabelBytes = 4096;  // one page

// This process's file; null if it cannot be created.
MemoryFileRef own_memory_file();
// Takes a part of this many bytes that was never used before. Returns false if none is left.
bool take_place(std::uint64_t bytes, std::uint64_t *offset);
// The memory file of the process that exported the description.
MemoryFileRef memory_file_of(int exported);

// A file description for the memory of the label at `offset`; -1 if there is none.
int export_description(const MemoryFile &file, std::uint64_t offset);
// The position of a description; returns false if it cannot be determined.
bool position_of(int exported, std::uint64_t *offset);
// Keeps the open file description alive without a descriptor; returns null if that is impossible.
void *keep_description(int exported, std::uint64_t offset);
void drop_description(void *kept);
// True if a description for that label exists.
bool is_exported(const MemoryFile &file, std::uint64_t offset);

}  // namespace simcuda
