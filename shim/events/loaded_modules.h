// The ELF files that the process has loaded, to be found by the addresses of their code.
// Layer: events (a leaf). Threads: none of its own. Asks the loader, which takes its own lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ration::events {

class LoadedModules {
 public:
  struct Module {
    std::uintptr_t start, end;  // the range of its segments
    std::uintptr_t base;        // the offset that the loader added to the file's addresses
    std::string path;           // empty: the program itself
    std::string build_id;       // hexadecimal; empty: none
  };

  // Reads the list of loaded files if the loader has loaded or unloaded any since `before` was read. Otherwise returns
  // false and leaves this object unchanged. REQUIRES: the caller holds no lock that a constructor of the program's
  // libraries may wait for.
  bool ask(const LoadedModules &before);
  // How many files have ever been unloaded.
  static unsigned long long unloaded_so_far() noexcept;
  unsigned long long unloaded() const { return unloaded_; }
  // True if files were unloaded between `before` and this object; an address may then belong to a different file.
  bool lost_some(const LoadedModules &before) const { return unloaded_ != before.unloaded_; }
  bool is_older(const LoadedModules &than) const { return loaded_ + unloaded_ < than.loaded_ + than.unloaded_; }
  // Returns nullptr if the address is in no file.
  const Module *find(std::uintptr_t address) const;
  const std::vector<Module> &all() const { return modules_; }

 private:
  std::vector<Module> modules_;  // by address
  unsigned long long loaded_ = 0, unloaded_ = 0;
};

}  // namespace ration::events
