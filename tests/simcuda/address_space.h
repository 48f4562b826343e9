// The addresses and the bytes of one simulated device: a sparse memory file, mapped twice. The program sees device
// addresses without access; the simulator has a private read-write view. Managed memory is mapped only once, for both.
// Pages are untouched until used. Other processes of the machine can map memory that is published in the file.
// Layer: none. Threads: the caller locks; view() needs no lock. Owns: its mappings, for ever.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace simcuda {

inline constexpr std::uint64_t kUnitBytes = 512;  // every address and every size is a multiple of this

class AddressSpace {
 public:
  // Reserves addresses for a device with this much memory. Reserves several times that much if possible, so that
  // physical memory runs out first, as on hardware. Returns null if no address space is left.
  enum class Host : unsigned char { kKeptOut, kLetIn };
  static AddressSpace *create(std::uint64_t physical_bytes, bool shared, Host host = Host::kKeptOut);
  // Addresses below 4 GiB: the largest free piece, at most `most_bytes`. Null: none.
  static AddressSpace *create_legacy32(std::uint64_t most_bytes);

  std::optional<std::uint64_t> take(std::uint64_t bytes);
  void give(std::uint64_t address, std::uint64_t bytes);  // also discards the contents
  // The contents of whole pages are lost. Needs no lock.
  void discard(std::uint64_t address, std::uint64_t bytes) const;

  // The file, for another process to open (/proc/PID/fd); -1 if no other process shares the machine.
  struct File {
    int descriptor = -1;
    std::uint64_t inode = 0;
  };
  const File &file() const { return file_; }
  std::uint64_t offset(std::uint64_t address) const { return address - base_; }
  // Publishes in the file that the memory `id` begins at the address; 0 withdraws it. Returns false if this fails.
  bool publish(std::uint64_t address, std::uint64_t id);
  // The id that a file publishes at the offset; 0 if there is none.
  static std::uint64_t published(int descriptor, std::uint64_t offset);

  // Maps bytes of another process's file at addresses in this process. The bytes may begin anywhere in a page.
  std::optional<std::uint64_t> map(int descriptor, std::uint64_t offset, std::uint64_t bytes);
  void unmap(std::uint64_t address, std::uint64_t bytes);

  bool contains(std::uint64_t address) const { return address >= base_ && address - base_ < bytes_; }
  std::byte *view(std::uint64_t address) const { return view_ + (address - base_); }

 private:
  AddressSpace(std::uint64_t base, std::byte *view, std::uint64_t bytes, File file);

  std::uint64_t base_;
  std::byte *view_;
  std::uint64_t bytes_;
  File file_;
  std::map<std::uint64_t, std::uint64_t> free_;  // address → bytes
};

}  // namespace simcuda
