#include "events/stack_tree.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ration::events {
namespace {

std::string json_text(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::uint32_t StackTree::module_of(const LoadedModules::Module *module, std::vector<std::string> &lines) {
  ModuleKey key;  // empty for code that is in no file, because it was made at run time
  if (module != nullptr) {
    key = {module->path.empty() ? executable_ : module->path, module->build_id};
  }
  const auto [found, is_new] = modules_.try_emplace(key, last_module_ + 1);
  if (is_new) {
    ++last_module_;
    added_modules_.push_back(key);
    lines.push_back(fmt::format(R"({{"t":"mod","id":{},"path":{},"build_id":"{}","base":"{:#x}")", found->second,
                                json_text(key.first), key.second, module != nullptr ? module->base : 0));
  }
  return found->second;
}

std::uint32_t StackTree::add(std::uint32_t parent, std::uintptr_t code, const LoadedModules &modules,
                             std::vector<std::string> &lines) {
  auto found = frames_.find(code);
  if (found == frames_.end()) {
    const LoadedModules::Module *module = modules.find(code);
    const Place place{module_of(module, lines), code - (module != nullptr ? module->base : 0)};
    const auto [known, is_new] = places_.try_emplace(place, last_frame_ + 1);
    if (is_new) {
      ++last_frame_;
      added_places_.push_back(place);
      lines.push_back(
          fmt::format(R"({{"t":"frame","id":{},"mod":{},"off":{})", known->second, place.first, place.second));
    }
    found = frames_.emplace(code, known->second).first;
    added_frames_.push_back(code);
  }
  return node(parent, found->second, lines);
}

std::uint32_t StackTree::add(std::uint32_t parent, const PythonFrame &frame, std::vector<std::string> &lines) {
  const auto [found, is_new] = python_frames_.try_emplace(frame, last_frame_ + 1);
  if (is_new) {
    ++last_frame_;
    added_python_.push_back(frame);
    lines.push_back(fmt::format(R"({{"t":"frame","id":{},"mod":0,"off":0,"fn":{},"file":{},"line":{})", found->second,
                                json_text(frame.function), json_text(frame.file), frame.line));
  }
  return node(parent, found->second, lines);
}

std::uint32_t StackTree::node(std::uint32_t parent, std::uint32_t frame, std::vector<std::string> &lines) {
  const Node key{parent, frame};
  const auto found = nodes_.find(key);
  if (found != nodes_.end()) {
    return found->second;
  }
  if (nodes_.size() >= kMost) {
    return parent;
  }
  nodes_.emplace(key, ++last_node_);
  added_nodes_.push_back(key);
  lines.push_back(fmt::format(R"({{"t":"stack","id":{},"frame":{},"parent":{})", last_node_, frame, parent));
  return last_node_;
}

void StackTree::undo() {
  for (const Node &each : added_nodes_) {
    nodes_.erase(each);
  }
  for (const std::uintptr_t each : added_frames_) {
    frames_.erase(each);
  }
  for (const Place &each : added_places_) {
    places_.erase(each);
  }
  for (const PythonFrame &each : added_python_) {
    python_frames_.erase(each);
  }
  for (const ModuleKey &each : added_modules_) {
    modules_.erase(each);
  }
  keep();
}

}  // namespace ration::events
