// The ELF files that a process has loaded, by the addresses of their code.
// Layer: events (a leaf). Threads: none of its own. Asks the loader, under its lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ration::events {

class LoadedModules {
 public:
  struct Module {
    std::uintptr_t start, end;  // of its segments
    std::uintptr_t base;        // what the loader added to the file's addresses
    std::string path;           // empty: the program itself
    std::string build_id;       // hexadecimal; empty: none
  };

  // Asks the loader if it has loaded or unloaded files since `before` asked. False: it has not, and this is not
  // changed. REQUIRES: the caller holds no lock that a constructor of the program's libraries may wait for.
  bool ask(const LoadedModules &before);
  // How many files were ever unloaded.
  static unsigned long long unloaded_so_far() noexcept;
  unsigned long long unloaded() const { return unloaded_; }
  // Whether files were unloaded between the two: addresses may mean others.
  bool lost_some(const LoadedModules &before) const { return unloaded_ != before.unloaded_; }
  bool is_older(const LoadedModules &than) const { return loaded_ + unloaded_ < than.loaded_ + than.unloaded_; }
  // nullptr: the address is in no file.
  const Module *find(std::uintptr_t address) const;
  const std::vector<Module> &all() const { return modules_; }

 private:
  std::vector<Module> modules_;  // by address
  unsigned long long loaded_ = 0, unloaded_ = 0;
};

}  // namespace ration::events
