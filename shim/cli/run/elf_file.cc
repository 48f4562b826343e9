#include "cli/run/elf_file.h"

#include <elf.h>
#include <link.h>

#include <array>
#include <cstring>
#include <fstream>
#include <optional>

namespace ration::cli {

namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Dynamic = ElfW(Dyn);
using VersionNeed = ElfW(Verneed);
using VersionNeedName = ElfW(Vernaux);
using VersionDefinition = ElfW(Verdef);
using VersionDefinitionName = ElfW(Verdaux);

constexpr std::size_t kLongestString = 4096;
constexpr std::size_t kMostDynamicEntries = 65536;
constexpr std::size_t kMostVersions = 4096;  // glibc 2.36 has 44

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#else
#error "define this machine's ELF number"
#endif
constexpr unsigned char kByteOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
constexpr unsigned char kWordClass = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;

// Bytes read: fewer at the end of the file, 0 on any error.
std::size_t read_at(std::ifstream &file, std::uint64_t offset, void *out, std::size_t bytes) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(static_cast<char *>(out), static_cast<std::streamsize>(bytes));
  return static_cast<std::size_t>(file.gcount());
}

template <class T>
std::optional<T> object_at(std::ifstream &file, std::uint64_t offset) {
  T out;
  return read_at(file, offset, &out, sizeof(out)) == sizeof(out) ? std::optional<T>(out) : std::nullopt;
}

std::string string_at(std::ifstream &file, std::uint64_t offset) {
  char buffer[kLongestString];
  return std::string(buffer, strnlen(buffer, read_at(file, offset, buffer, sizeof(buffer))));
}

std::vector<Segment> read_segments(std::ifstream &file, const Header &header) {
  std::vector<Segment> segments;
  for (unsigned i = 0; header.e_phentsize == sizeof(Segment) && i < header.e_phnum; ++i) {
    if (const auto segment = object_at<Segment>(file, header.e_phoff + i * sizeof(Segment))) {
      segments.push_back(*segment);
    }
  }
  return segments;
}

// The dynamic section names its strings by address; the loaded segments map an address to an offset in the file.
std::optional<std::uint64_t> offset_of(const std::vector<Segment> &segments, std::uint64_t address) {
  for (const Segment &segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

// Records of either table are chained by their distances; the last has none.
void read_needed_versions(std::ifstream &file, std::uint64_t table, std::uint64_t strings, ElfFile &elf) {
  for (std::size_t i = 0; i < kMostVersions; ++i) {
    const auto need = object_at<VersionNeed>(file, table);
    if (!need) {
      return;
    }
    const std::string library = string_at(file, strings + need->vn_file);
    std::uint64_t at = table + need->vn_aux;
    for (unsigned n = 0; n < need->vn_cnt && elf.needed_versions.size() < kMostVersions; ++n) {
      const auto name = object_at<VersionNeedName>(file, at);
      if (!name) {
        return;
      }
      if ((name->vna_flags & VER_FLG_WEAK) == 0) {
        elf.needed_versions.push_back({library, string_at(file, strings + name->vna_name)});
      }
      at += name->vna_next;
    }
    if (need->vn_next == 0) {
      return;
    }
    table += need->vn_next;
  }
}

void read_versions(std::ifstream &file, std::uint64_t table, std::uint64_t strings, ElfFile &elf) {
  for (std::size_t i = 0; i < kMostVersions; ++i) {
    const auto definition = object_at<VersionDefinition>(file, table);
    const auto name = definition ? object_at<VersionDefinitionName>(file, table + definition->vd_aux) : std::nullopt;
    if (!name) {
      return;
    }
    elf.versions.push_back(string_at(file, strings + name->vda_name));
    if (definition->vd_next == 0) {
      return;
    }
    table += definition->vd_next;
  }
}

void read_dynamic(std::ifstream &file, const std::vector<Segment> &segments, const Segment &section, ElfFile &elf) {
  std::vector<Dynamic> entries;
  std::optional<std::uint64_t> strings;
  for (std::size_t i = 0; i < section.p_filesz / sizeof(Dynamic) && i < kMostDynamicEntries; ++i) {
    const auto entry = object_at<Dynamic>(file, section.p_offset + i * sizeof(Dynamic));
    if (!entry || entry->d_tag == DT_NULL) {
      break;
    }
    if (entry->d_tag == DT_STRTAB) {
      strings = offset_of(segments, entry->d_un.d_ptr);
    }
    entries.push_back(*entry);
  }
  for (const Dynamic &entry : entries) {
    if (strings && entry.d_tag == DT_NEEDED) {
      elf.needed.push_back(string_at(file, *strings + entry.d_un.d_val));
    } else if (strings && (entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH)) {
      elf.search_paths.push_back(string_at(file, *strings + entry.d_un.d_val));
    } else if (strings && entry.d_tag == DT_SONAME) {
      elf.soname = string_at(file, *strings + entry.d_un.d_val);
    } else if (strings && (entry.d_tag == DT_VERNEED || entry.d_tag == DT_VERDEF)) {
      if (const auto table = offset_of(segments, entry.d_un.d_ptr)) {
        (entry.d_tag == DT_VERNEED ? read_needed_versions : read_versions)(file, *table, *strings, elf);
      }
    }
  }
}

}  // namespace

ElfFile read_elf(const std::string &path) {
  ElfFile elf;
  std::ifstream file(path, std::ios::binary);
  const auto magic = object_at<std::array<char, SELFMAG>>(file, 0);
  elf.is_elf = magic && std::memcmp(magic->data(), ELFMAG, SELFMAG) == 0;
  const auto header = object_at<Header>(file, 0);
  elf.is_native = elf.is_elf && header && header->e_ident[EI_CLASS] == kWordClass &&
                  header->e_ident[EI_DATA] == kByteOrder && header->e_machine == kMachine;
  if (!elf.is_native) {
    return elf;
  }
  const std::vector<Segment> segments = read_segments(file, *header);
  for (const Segment &segment : segments) {
    if (segment.p_type == PT_INTERP) {
      elf.interpreter = string_at(file, segment.p_offset);
    } else if (segment.p_type == PT_DYNAMIC) {
      read_dynamic(file, segments, segment, elf);
    }
  }
  return elf;
}

}  // namespace ration::cli
