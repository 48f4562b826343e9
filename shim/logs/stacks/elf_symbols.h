// Function names and the build id of a 64-bit ELF file, from its own tables. Layer: logs. Owns: the data read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ration::logs {

class ElfSymbols {
 public:
  // Reads nothing if `path` is not a 64-bit ELF file, or if the file is damaged.
  explicit ElfSymbols(const std::string &path);

  // The build ID in hexadecimal; empty: the file has none.
  const std::string &build_id() const { return build_id_; }
  // True if the linker's table of all functions, which `strip` removes, is missing.
  bool is_stripped() const { return is_stripped_; }
  // The mangled name of the function that covers `address`; empty: unknown.
  const std::string &function_at(std::uint64_t address) const;

 private:
  struct Function {
    std::uint64_t address, size;
    std::string name;
  };
  bool is_stripped_ = false;
  std::string build_id_;
  std::vector<Function> functions_;  // sorted by address
};

}  // namespace ration::logs
