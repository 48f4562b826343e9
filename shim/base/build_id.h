// Finds the build id among the notes of an ELF file, in memory or on disk.
// Layer: base. Threads: pure functions.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace ration {

// The build id in hexadecimal; empty if there is none or if the notes before it are damaged.
inline std::string build_id_in(std::string_view notes) {
  constexpr const char *kDigits = "0123456789abcdef";
  constexpr std::size_t kAligned = 4;
  const auto padded = [](std::size_t size) { return (size + kAligned - 1) / kAligned * kAligned; };
  Elf64_Nhdr note;  // 32-bit ELF files have the same layout
  while (notes.size() >= sizeof(note)) {
    std::memcpy(&note, notes.data(), sizeof(note));
    notes.remove_prefix(sizeof(note));
    const std::size_t name_bytes = padded(note.n_namesz);
    if (name_bytes > notes.size() || note.n_descsz > notes.size() - name_bytes) {
      break;
    }
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(0, note.n_namesz) == std::string_view("GNU\0", 4)) {
      std::string text;
      for (const char byte : notes.substr(name_bytes, note.n_descsz)) {
        text += kDigits[static_cast<unsigned char>(byte) >> 4U];
        text += kDigits[static_cast<unsigned char>(byte) & 15U];
      }
      return text;
    }
    notes.remove_prefix(std::min(notes.size(), name_bytes + padded(note.n_descsz)));
  }
  return "";
}

}  // namespace ration
