#include "cli/launch/elf_file.h"

#include <link.h>

#include <optional>

#include "logs/stacks/elf_image.h"

namespace ration::cli {

namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Dynamic = ElfW(Dyn);
using VersionNeed = ElfW(Verneed);
using VersionNeedName = ElfW(Vernaux);
using VersionDefinition = ElfW(Verdef);
using VersionDefinitionName = ElfW(Verdaux);

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

std::vector<Segment> read_segments(const logs::ElfImage &file, const Header &header) {
  std::vector<Segment> segments;
  for (unsigned i = 0; header.e_phentsize == sizeof(Segment) && i < header.e_phnum; ++i) {
    if (const auto segment = file.read<Segment>(header.e_phoff + i * sizeof(Segment))) {
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

// The records of both tables are chained by their distances; the last record has distance 0.
void read_needed_versions(const logs::ElfImage &file, std::uint64_t table, std::uint64_t strings, ElfFile &elf) {
  for (std::size_t i = 0; i < kMostVersions; ++i) {
    const auto need = file.read<VersionNeed>(table);
    if (!need) {
      return;
    }
    const std::string library = file.string_at(strings + need->vn_file);
    std::uint64_t at = table + need->vn_aux;
    for (unsigned n = 0; n < need->vn_cnt && elf.needed_versions.size() < kMostVersions; ++n) {
      const auto name = file.read<VersionNeedName>(at);
      if (!name) {
        return;
      }
      if ((name->vna_flags & VER_FLG_WEAK) == 0) {
        elf.needed_versions.push_back({library, file.string_at(strings + name->vna_name)});
      }
      at += name->vna_next;
    }
    if (need->vn_next == 0) {
      return;
    }
    table += need->vn_next;
  }
}

void read_versions(const logs::ElfImage &file, std::uint64_t table, std::uint64_t strings, ElfFile &elf) {
  for (std::size_t i = 0; i < kMostVersions; ++i) {
    const auto definition = file.read<VersionDefinition>(table);
    const auto name = definition ? file.read<VersionDefinitionName>(table + definition->vd_aux) : std::nullopt;
    if (!name) {
      return;
    }
    elf.versions.push_back(file.string_at(strings + name->vda_name));
    if (definition->vd_next == 0) {
      return;
    }
    table += definition->vd_next;
  }
}

void read_dynamic(const logs::ElfImage &file, const std::vector<Segment> &segments, const Segment &section,
                  ElfFile &elf) {
  std::vector<Dynamic> entries;
  std::optional<std::uint64_t> strings;
  for (std::size_t i = 0; i < section.p_filesz / sizeof(Dynamic) && i < kMostDynamicEntries; ++i) {
    const auto entry = file.read<Dynamic>(section.p_offset + i * sizeof(Dynamic));
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
      elf.needed.push_back(file.string_at(*strings + entry.d_un.d_val));
    } else if (strings && (entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH)) {
      elf.search_paths.push_back(file.string_at(*strings + entry.d_un.d_val));
    } else if (strings && entry.d_tag == DT_SONAME) {
      elf.soname = file.string_at(*strings + entry.d_un.d_val);
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
  const logs::ElfImage file(path);
  elf.is_elf = file.is_elf();
  const auto header = file.read<Header>(0);
  elf.is_native = elf.is_elf && header && header->e_ident[EI_CLASS] == kWordClass &&
                  header->e_ident[EI_DATA] == kByteOrder && header->e_machine == kMachine;
  if (!elf.is_native) {
    return elf;
  }
  const std::vector<Segment> segments = read_segments(file, *header);
  for (const Segment &segment : segments) {
    if (segment.p_type == PT_INTERP) {
      elf.interpreter = file.string_at(segment.p_offset);
    } else if (segment.p_type == PT_DYNAMIC) {
      read_dynamic(file, segments, segment, elf);
    }
  }
  return elf;
}

}  // namespace ration::cli
