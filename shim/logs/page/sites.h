// The sites in a program from which the blocks of a log were requested, and their names for display on a page.
// Layer: logs. Threads: none of its own.
//
// A site is a stack. Without stacks, a site is the combination of a memory kind, a driver function and a size class.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "logs/reader/names.h"
#include "logs/reader/record.h"
#include "logs/stacks/stack_table.h"

namespace ration::logs {

struct Site {
  struct Place {
    std::uint32_t name, library, file;  // numbers from Names
  };
  std::uint32_t caller = 0;
  std::vector<Place> path;  // outermost first
};

class Sites {
 public:
  // `names`: shared by all logs of a page.
  explicit Sites(Names &names) : names_(&names) {}

  // Call this with every record. Returns the site of an `alloc`, and 0 for other records.
  std::uint32_t add(const Record &record);
  const std::vector<Site> &all() const { return all_; }
  bool has_stacks() const { return has_stacks_; }

 private:
  std::uint32_t of_stack(std::uint64_t stack, const Record &record);
  std::uint32_t without_stack(const Record &record);

  Names *names_;
  StackTable stacks_;
  bool has_stacks_ = false;
  std::vector<Site> all_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_stack_;
  std::unordered_map<std::string, std::uint32_t> by_class_;
};

}  // namespace ration::logs
