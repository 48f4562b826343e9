// The file of a group in a state folder: found, made, checked, mapped, removed.
// Layer: ledger. Threads: a value. Owns: its mapping.
//
// A file is made under a passing name and gets its own in one step, whole. It is removed only by whoever holds the life
// bytes of all slots, that is when nobody is in it; who joins takes a life byte first and then looks whether the file
// still has its name. So no two files of one group are ever in use, and nobody waits but for a remover that was stopped
// between two system calls: 100 ms at most, then the file counts as unusable.
#pragma once

#include <string>
#include <utility>

#include "ledger/shared_layout.h"

namespace ration::ledger {

// A read-write mapping of a group's file that fork children do not inherit.
class GroupFile {
 public:
  GroupFile() = default;
  GroupFile(GroupFile &&other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  GroupFile &operator=(GroupFile &&other) noexcept {
    std::swap(header_, other.header_);
    return *this;
  }
  ~GroupFile();

  explicit operator bool() const { return header_ != nullptr; }
  shared::Header &header() const { return *header_; }
  shared::Slot &slot(std::uint32_t index) const {
    return reinterpret_cast<shared::Slot *>(reinterpret_cast<char *>(header_) + sizeof(shared::Header))[index];
  }
  // Slots that the file has space for. Never more than there can be, whatever the file says.
  std::uint32_t slots() const {
    const std::uint32_t ready = header_->ready_slots.load(std::memory_order_acquire);  // pairs with grow()'s release
    return ready < shared::kSlots ? ready : shared::kSlots;
  }

  // Maps what `descriptor` refers to, after checking that it is a group's file of ours and of this layout. Else
  // `problem` says what it is.
  static GroupFile map(int descriptor, std::string &problem);

 private:
  explicit GroupFile(shared::Header *header) : header_(header) {}
  shared::Header *header_ = nullptr;
};

// A descriptor, closed in the end.
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
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// The folder, made with mode 0700 where it is absent. Refused, with the `problem`: a link, another user's, one that
// others may write to.
Descriptor open_state_folder(const std::string &path, bool make, std::string &problem);

// The file `name` in `folder`. Refused: a link, another user's, one that others may write to. ENOENT is no problem: the
// descriptor is then empty.
Descriptor open_group_file(int folder, const std::string &name, std::string &problem);

// Makes the file. True too where somebody else made it meanwhile.
bool make_group_file(int folder, const std::string &name, const std::string &group, std::string &problem);

// Of files of other kinds too, each made under a passing name as a group's is.
// Space for bytes of the file, whatever it has there. 0, or the error.
int give_space(int descriptor, std::size_t begin, std::size_t end);
// The name in one step, and only if nobody has it. 0, or the error.
int take_name(int folder, const char *passing, const char *name);
std::string passing_name();

// Gives the file space for slot `index`. False: there is none (ENOSPC); errno says what.
bool grow(const GroupFile &file, int descriptor, std::uint32_t index);

// Whether `descriptor` is of the file that has `name` now.
bool has_name(int descriptor, int folder, const std::string &name);

// Removes the file, or one under a passing name whose maker died, if nobody is in it.
bool remove_if_dead(int folder, const std::string &name);

// Whether `name` is a passing one.
bool is_passing(const std::string &name);

}  // namespace ration::ledger
