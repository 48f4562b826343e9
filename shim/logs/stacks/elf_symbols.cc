#include "logs/stacks/elf_symbols.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/build_id.h"
#include "logs/stacks/elf_image.h"

namespace ration::logs {

ElfSymbols::ElfSymbols(const std::string &path) {
  const ElfImage file(path);
  const auto header = file.read<Elf64_Ehdr>(0);
  if (!header || !file.is_elf() || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return;
  }
  for (unsigned i = 0; i < header->e_phnum && build_id_.empty(); ++i) {
    const auto segment = file.read<Elf64_Phdr>(header->e_phoff + std::uint64_t{i} * header->e_phentsize);
    if (segment && segment->p_type == PT_NOTE) {
      build_id_ = build_id_in(file.piece(segment->p_offset, segment->p_filesz));
    }
  }
  const auto section = [&](std::uint64_t number) {
    return number < header->e_shnum ? file.read<Elf64_Shdr>(header->e_shoff + number * header->e_shentsize)
                                    : std::nullopt;
  };
  is_stripped_ = true;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto table = section(i);
    is_stripped_ = is_stripped_ && !(table && table->sh_type == SHT_SYMTAB);
    const bool has_symbols = table && (table->sh_type == SHT_SYMTAB || table->sh_type == SHT_DYNSYM);
    const auto names = has_symbols ? section(table->sh_link) : std::nullopt;
    if (!names) {
      continue;
    }
    const std::string texts = file.piece(names->sh_offset, names->sh_size);
    const std::string symbols = file.piece(table->sh_offset, table->sh_size);
    Elf64_Sym symbol;
    for (std::size_t at = 0; symbols.size() - at >= sizeof(symbol); at += sizeof(symbol)) {
      std::memcpy(&symbol, symbols.data() + at, sizeof(symbol));
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0 && symbol.st_name < texts.size()) {
        const std::string_view name = std::string_view(texts).substr(symbol.st_name);
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
  // Functions written by hand in assembly have no size.
  return found->size == 0 || address < found->address + found->size ? found->name : kUnknown;
}

}  // namespace ration::logs
