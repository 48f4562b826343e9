// The addresses and the bytes of one simulated device: a sparse memory file, mapped without access where the program
// sees device addresses and read-write at a private place for the simulator. Nothing is touched before it is used.
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
  static AddressSpace *create(std::uint64_t physical_bytes);
  // Addresses that 32 bits can hold: as many as are free in one piece, `most_bytes` at most. Null: none.
  static AddressSpace *create_narrow(std::uint64_t most_bytes);

  std::optional<std::uint64_t> take(std::uint64_t bytes);
  // Forgets the contents of whole pages.
  void give(std::uint64_t address, std::uint64_t bytes);

  bool contains(std::uint64_t address) const { return address >= base_ && address - base_ < bytes_; }
  std::byte *view(std::uint64_t address) const { return view_ + (address - base_); }

 private:
  AddressSpace(std::uint64_t base, std::byte *view, std::uint64_t bytes);

  std::uint64_t base_;
  std::byte *view_;
  std::uint64_t bytes_;
  std::map<std::uint64_t, std::uint64_t> free_;  // address → bytes
};

}  // namespace simcuda
