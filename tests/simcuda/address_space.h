// The addresses and the bytes of one simulated device: a sparse memory file, mapped without access where the program
// The addresses and the bytes of one simulated device: a sparse memory file, mapped without access where the program
// sees device addresses and read-write at a private place for the simulator; where the program itself may touch them
// (managed memory), only once. Nothing is touched before it is used. Where others share the machine they can map what
// is published in it, and this one their bytes.
// Layer: none. Threads: the caller locks; view() needs no lock. Owns: its mappings, for ever.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace simcuda {

inline constexpr std::uint64_t kGranuleBytes = 512;  // every address and every size is a multiple

class AddressSpace {
 public:
  // Addresses for a device of so much memory; several times as many as that where possible, so that, as on hardware,
  // physical memory runs out before addresses do. Null: no address space left.
  enum class Host : unsigned char { kKeptOut, kLetIn };
  static AddressSpace *create(std::uint64_t physical_bytes, bool shared, Host host = Host::kKeptOut);

  std::optional<std::uint64_t> take(std::uint64_t bytes);
  // Forgets the contents of whole pages.
  void give(std::uint64_t address, std::uint64_t bytes);

  // The file, for another process to open (/proc/PID/fd); -1: nobody else is on the machine.
  struct File {
    int descriptor = -1;
    std::uint64_t inode = 0;
  };
  const File &file() const { return file_; }
  std::uint64_t offset(std::uint64_t address) const { return address - base_; }
  // Says in the file that the memory `id` begins at the address; 0: none that others may have. False: it cannot.
  bool publish(std::uint64_t address, std::uint64_t id);
  // What a file says of that offset; 0: nothing.
  static std::uint64_t published(int descriptor, std::uint64_t offset);

  // Addresses of ours that show those bytes of another process's file, wherever in a page they begin.
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
