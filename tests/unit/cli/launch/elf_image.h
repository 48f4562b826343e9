// Builds small ELF files for tests, so that neither a compiler nor another C library is needed. Threads: one.
#pragma once

#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace ration::cli {

struct ElfImage {
  std::string interpreter;  // empty: no PT_INTERP
  std::vector<std::string> needed;
  std::string soname;
  unsigned char word_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
#if defined(__x86_64__)
  unsigned short machine = EM_X86_64;
#else
  unsigned short machine = EM_AARCH64;
#endif

  // Headers, one PT_LOAD over the whole file at address 0x10000, PT_DYNAMIC, and PT_INTERP if it is set.
  std::string bytes() const {
    constexpr std::uint64_t kBase = 0x10000;
    std::string strings(1, '\0');
    const auto add = [&strings](const std::string &text) {
      strings += text + '\0';
      return strings.size() - text.size() - 1;
    };
    std::vector<ElfW(Dyn)> entries;
    for (const std::string &each : needed) {
      entries.push_back({DT_NEEDED, {add(each)}});
    }
    if (!soname.empty()) {
      entries.push_back({DT_SONAME, {add(soname)}});
    }
    const std::size_t headers = sizeof(ElfW(Ehdr)) + 3 * sizeof(ElfW(Phdr));
    const std::size_t dynamic_at = headers;
    const std::size_t dynamic_size = (entries.size() + 2) * sizeof(ElfW(Dyn));
    const std::size_t strings_at = dynamic_at + dynamic_size;
    const std::size_t interpreter_at = strings_at + strings.size();
    entries.push_back({DT_STRTAB, {kBase + strings_at}});
    entries.push_back({DT_NULL, {0}});

    ElfW(Ehdr) header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = word_class;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = machine;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(ElfW(Phdr));
    const std::size_t size = interpreter_at + interpreter.size() + 1;
    std::vector<ElfW(Phdr)> segments = {segment(PT_LOAD, 0, size, kBase)};
    segments.push_back(segment(PT_DYNAMIC, dynamic_at, dynamic_size, kBase));
    if (!interpreter.empty()) {
      segments.push_back(segment(PT_INTERP, interpreter_at, interpreter.size() + 1, kBase));
    }
    header.e_phnum = static_cast<ElfW(Half)>(segments.size());

    std::string out(reinterpret_cast<const char *>(&header), sizeof(header));
    out.append(reinterpret_cast<const char *>(segments.data()), segments.size() * sizeof(segments[0]));
    out.resize(headers);
    out.append(reinterpret_cast<const char *>(entries.data()), dynamic_size);
    return out + strings + interpreter + '\0';
  }

 private:
  static ElfW(Phdr) segment(unsigned type, std::size_t offset, std::size_t size, std::uint64_t base) {
    ElfW(Phdr) header{};
    header.p_type = type;
    header.p_offset = offset;
    header.p_vaddr = base + offset;
    header.p_filesz = header.p_memsz = size;
    return header;
  }
};

inline std::string write_file(const std::string &path, const std::string &bytes, mode_t mode = 0755) {
  std::ofstream(path, std::ios::binary) << bytes;
  chmod(path.c_str(), mode);
  return path;
}

}  // namespace ration::cli
