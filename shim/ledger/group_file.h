// The file of a group in a state folder: finds, creates, checks, maps and removes it.
// Layer: ledger. Threads: a value. Owns: its mapping.
// A complete file gets its name in one step. Only a process that holds the locks on all life bytes removes it; the file
// then has no members. A joiner locks a life byte, then checks that the file still has its name, so a group never has
// two files in use. A joiner waits only while another process is removing the file, and for at most 100 ms.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <utility>

#include "ledger/shared_layout.h"

namespace ration::ledger {

// Maps a group's file for reading and writing. Forked children do not inherit the mapping.
// Design: design/ledger.md#one-file
class GroupFile {
 public:
  GroupFile() = default;
  GroupFile(GroupFile &&other) noexcept
      : header_(std::exchange(other.header_, nullptr)), known_slots_(other.known_slots_.load()) {}
  GroupFile &operator=(GroupFile &&other) noexcept {
    std::swap(header_, other.header_);
    known_slots_.store(other.known_slots_.load());
    return *this;
  }
  ~GroupFile();

  explicit operator bool() const { return header_ != nullptr; }
  shared::Header &header() const { return *header_; }
  shared::Slot &slot(std::uint32_t index) const {
    return reinterpret_cast<shared::Slot *>(reinterpret_cast<char *>(header_) + sizeof(shared::Header))[index];
  }
  // The number of slots that the file has space for, at most kSlots. Does not rely on the count in the file alone,
  // which may have been overwritten.
  std::uint32_t slots() const;
  // True if the file to which `descriptor` refers is shorter than it was earlier. Touches no page of the file.
  bool is_cut(int descriptor) const;
  // True if the pages that the file had earlier still exist; asks the kernel. Costs one system call, or two if the file
  // has grown.
  bool has_pages() const;

  // Maps the file to which `descriptor` refers, if it is a group's file of this layout. If not, the result is empty and
  // `problem` says why.
  static GroupFile map(int descriptor, std::string &problem);

 private:
  explicit GroupFile(shared::Header *header) : header_(header) {}
  shared::Header *header_ = nullptr;
  mutable std::atomic<std::uint32_t> known_slots_{0};  // the most slots that the file has had so far
};

// Owns a file descriptor and closes it.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor &&other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// True if the process cannot open another descriptor now.
bool lacks_descriptors();

// The message of an errno value, without strerror(3), which is not thread-safe.
std::string error_text(int error);

// Opens the folder, or creates it with mode 0700. Refuses a link, another user's folder, or a folder that others may
// write to; `problem` then says why.
// Design: design/ledger.md#trusted-files
Descriptor open_state_folder(const std::string &path, bool make, std::string &problem);

// Opens the file `name` in `folder`. Refuses a link, another user's file, or a file that others may write to. ENOENT is
// not a problem; in that case the descriptor is empty.
Descriptor open_group_file(int folder, const std::string &name, std::string &problem);

// Creates the file. Also returns true if another process created it first.
bool make_group_file(int folder, const std::string &name, const std::string &group, std::string &problem);

// The next three functions serve other kinds of files too. allocate_space() keeps the content of the bytes. Returns 0
// or errno.
int allocate_space(int descriptor, std::size_t begin, std::size_t end);
// Moves or links the temporary file to `name` in one step, and only if that name is free. Returns 0 or errno.
int claim_name(int folder, const char *temporary, const char *name);
std::string temporary_name();

// Allocates space for slot `index`. Returns false on failure; errno says why (ENOSPC).
bool grow(const GroupFile &file, int descriptor, std::uint32_t index);

// True if `name` in `folder` is now the file to which `descriptor` refers.
bool has_name(int descriptor, int folder, const std::string &name);

// True if the file to which `descriptor` refers has been removed from its folder.
bool is_unnamed(int descriptor);

// Removes the file if it has no members; also removes a file under a temporary name if its creator has died.
bool remove_if_dead(int folder, const std::string &name);

// True if `name` is a temporary name.
bool is_temporary_name(const std::string &name);

}  // namespace ration::ledger
