#include "logs/stacks/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/build_id.h"

namespace ration::logs {
namespace {

// A file in memory, whose every piece is asked for by its place and is given only where it is whole.
class MappedFile {
 public:
  explicit MappedFile(const std::string &path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      void *const mapped = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
      if (mapped != MAP_FAILED) {
        bytes_ = {static_cast<const char *>(mapped), static_cast<std::size_t>(status.st_size)};
      }
    }
    if (file >= 0) {
      close(file);
    }
  }
  ~MappedFile() {
    if (!bytes_.empty()) {
      munmap(const_cast<char *>(bytes_.data()), bytes_.size());
    }
  }
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::string_view piece(std::uint64_t at, std::uint64_t size) const {
    return at <= bytes_.size() && size <= bytes_.size() - at ? bytes_.substr(at, size) : std::string_view();
  }
  template <class Struct>
  bool read(std::uint64_t at, Struct &into) const {
    const std::string_view found = piece(at, sizeof(Struct));
    if (!found.empty()) {
      std::memcpy(&into, found.data(), sizeof(Struct));
    }
    return !found.empty();
  }

 private:
  std::string_view bytes_;
};

}  // namespace

ElfSymbols::ElfSymbols(const std::string &path) {
  const MappedFile file(path);
  Elf64_Ehdr header;
  if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return;
  }
  for (unsigned i = 0; i < header.e_phnum && build_id_.empty(); ++i) {
    Elf64_Phdr segment;
    if (file.read(header.e_phoff + std::uint64_t{i} * header.e_phentsize, segment) && segment.p_type == PT_NOTE) {
      build_id_ = build_id_in(file.piece(segment.p_offset, segment.p_filesz));
    }
  }
  const auto section = [&](std::uint64_t number, Elf64_Shdr &into) {
    return number < header.e_shnum && file.read(header.e_shoff + number * header.e_shentsize, into);
  };
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table;
    Elf64_Shdr names;
    if (!section(i, table) || (table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) ||
        !section(table.sh_link, names)) {
      continue;
    }
    const std::string_view texts = file.piece(names.sh_offset, names.sh_size);
    Elf64_Sym symbol;
    for (std::uint64_t at = 0; table.sh_size - at >= sizeof(symbol) && file.read(table.sh_offset + at, symbol);
         at += sizeof(symbol)) {
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0 && symbol.st_name < texts.size()) {
        const std::string_view name = texts.substr(symbol.st_name);
        functions_.push_back({symbol.st_value, symbol.st_size, std::string(name.substr(0, name.find('\0')))});
      }
    }
  }
  std::stable_sort(functions_.begin(), functions_.end(),
                   [](const Function &a, const Function &b) { return a.address < b.address; });
}

const std::string &ElfSymbols::function_at(std::uint64_t address) const {
  static const std::string kUnknown;
  auto found = std::upper_bound(functions_.begin(), functions_.end(), address,
                                [](std::uint64_t where, const Function &each) { return where < each.address; });
  if (found == functions_.begin()) {
    return kUnknown;
  }
  --found;
  // Hand-written code says no size.
  return found->size == 0 || address < found->address + found->size ? found->name : kUnknown;
}

}  // namespace ration::logs
