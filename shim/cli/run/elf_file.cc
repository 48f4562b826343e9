#include "cli/run/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <optional>

namespace ration::cli {

namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Dynamic = ElfW(Dyn);

constexpr std::size_t kLongestString = 4096;
constexpr std::size_t kMostDynamicEntries = 65536;

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#else
#error "say which ELF machine this is"
#endif
constexpr unsigned char kByteOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

class File {
 public:
  explicit File(const std::string &path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {}
  ~File() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  // Bytes read, fewer at the end of the file, 0 on any error.
  std::size_t read(void *out, std::size_t bytes, std::uint64_t offset) const {
    const ssize_t count = descriptor_ < 0 ? -1 : pread(descriptor_, out, bytes, static_cast<off_t>(offset));
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }

  template <class T>
  std::optional<T> at(std::uint64_t offset) const {
    T out;
    return read(&out, sizeof(out), offset) == sizeof(out) ? std::optional<T>(out) : std::nullopt;
  }

  std::string string_at(std::uint64_t offset) const {
    char buffer[kLongestString];
    return std::string(buffer, strnlen(buffer, read(buffer, sizeof(buffer), offset)));
  }

 private:
  int descriptor_;
};

std::vector<Segment> read_segments(const File &file, const Header &header) {
  std::vector<Segment> segments;
  if (header.e_phentsize == sizeof(Segment)) {
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      if (const auto segment = file.at<Segment>(header.e_phoff + i * sizeof(Segment))) {
        segments.push_back(*segment);
      }
    }
  }
  return segments;
}

// The strings of the dynamic section are named by address; the file has them where their segment says.
std::optional<std::uint64_t> offset_of(const std::vector<Segment> &segments, std::uint64_t address) {
  for (const Segment &segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

void read_dynamic(const File &file, const std::vector<Segment> &segments, const Segment &section, ElfFile &elf) {
  std::vector<Dynamic> entries;
  for (std::size_t i = 0; i < section.p_filesz / sizeof(Dynamic) && i < kMostDynamicEntries; ++i) {
    const auto entry = file.at<Dynamic>(section.p_offset + i * sizeof(Dynamic));
    if (!entry || entry->d_tag == DT_NULL) {
      break;
    }
    entries.push_back(*entry);
  }
  std::optional<std::uint64_t> strings;
  for (const Dynamic &entry : entries) {
    if (entry.d_tag == DT_STRTAB) {
      strings = offset_of(segments, entry.d_un.d_ptr);
    }
  }
  for (const Dynamic &entry : entries) {
    if (strings && entry.d_tag == DT_NEEDED) {
      elf.needed.push_back(file.string_at(*strings + entry.d_un.d_val));
    } else if (strings && entry.d_tag == DT_SONAME) {
      elf.soname = file.string_at(*strings + entry.d_un.d_val);
    }
  }
}

}  // namespace

ElfFile read_elf(const std::string &path) {
  ElfFile elf;
  const File file(path);
  unsigned char ident[EI_NIDENT];
  if (file.read(ident, sizeof(ident), 0) < SELFMAG || std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
    return elf;
  }
  elf.is_elf = true;
  const auto header = file.at<Header>(0);
  constexpr unsigned char kClass = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
  elf.is_native = header && ident[EI_CLASS] == kClass && ident[EI_DATA] == kByteOrder && header->e_machine == kMachine;
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
