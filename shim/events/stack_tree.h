// Keeps call stacks as a tree, so that each call is written only once, and creates the `mod`, `frame` and `stack`
// records of a log (README.md).
// Layer: events (a leaf). Threads: none of its own. Numbers count from 1; 0 is none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/loaded_modules.h"
#include "events/python_frames.h"

namespace ration::events {

class StackTree {
 public:
  static constexpr std::uint32_t kMost = 1'000'000;  // nodes; beyond this, a new call gets its caller's number

  explicit StackTree(std::string executable) : executable_(std::move(executable)) {}

  // The number of the stack that consists of `parent` and this call. Appends to `lines`, as open objects
  // (json_lines.h), the records that a reader of the log needs for this stack and does not have yet.
  std::uint32_t add(std::uint32_t parent, std::uintptr_t code, const LoadedModules &modules,
                    std::vector<std::string> &lines);
  std::uint32_t add(std::uint32_t parent, const PythonFrame &frame, std::vector<std::string> &lines);

  // To be called when addresses may from now on belong to other code. Records of files that stay loaded, or are loaded
  // again, remain valid.
  void forget_addresses() { frames_.clear(); }
  // To be called when all records must be written again.
  void write_again() { nodes_.clear(), frames_.clear(), places_.clear(), python_frames_.clear(), modules_.clear(); }
  // To be called if records added since the last keep() were not written, so that later calls add them again.
  void undo();
  void keep() {
    added_nodes_.clear(), added_frames_.clear(), added_places_.clear(), added_python_.clear(), added_modules_.clear();
  }

 private:
  using Node = std::pair<std::uint32_t, std::uint32_t>;  // parent, frame
  struct HashOfNode {
    std::size_t operator()(const Node &node) const {
      constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
      return ((std::uint64_t{node.first} << 32U) | node.second) * kOdd;
    }
  };
  using ModuleKey = std::pair<std::string, std::string>;   // path and build id
  using Place = std::pair<std::uint32_t, std::uintptr_t>;  // module, offset

  std::uint32_t node(std::uint32_t parent, std::uint32_t frame, std::vector<std::string> &lines);
  std::uint32_t module_of(const LoadedModules::Module *module, std::vector<std::string> &lines);

  const std::string executable_;
  std::unordered_map<Node, std::uint32_t, HashOfNode> nodes_;
  std::unordered_map<std::uintptr_t, std::uint32_t> frames_;  // by address, for files that are loaded now
  std::map<Place, std::uint32_t> places_;                     // by module and offset, also for unloaded files
  std::map<PythonFrame, std::uint32_t> python_frames_;
  std::map<ModuleKey, std::uint32_t> modules_;
  std::uint32_t last_frame_ = 0, last_node_ = 0, last_module_ = 0;
  std::vector<Node> added_nodes_;
  std::vector<std::uintptr_t> added_frames_;
  std::vector<Place> added_places_;
  std::vector<PythonFrame> added_python_;
  std::vector<ModuleKey> added_modules_;
};

}  // namespace ration::events
