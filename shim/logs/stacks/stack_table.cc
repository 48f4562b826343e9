#include "logs/stacks/stack_table.h"

#include <algorithm>
#include <iterator>

#include "base/file_name.h"
#include "logs/stacks/libraries.h"

namespace ration::logs {
namespace {

constexpr std::size_t kDeepest = 4096;  // a log that was tampered with may have a cycle of parents

bool is_interpreter(std::string_view path) {
  return file_name(path).substr(0, 6) == "python";
}

}  // namespace

std::string place_of(const StackFrame &frame) {
  if (frame.file.empty()) {
    return frame.function;
  }
  std::string text = frame.function;
  text += " (";
  text += file_name(frame.file);
  if (frame.line != 0) {
    text += ":";
    text += std::to_string(frame.line);
  }
  text += ")";
  return text;
}

bool StackTable::lacks_python() const {
  return is_interpreter(program_) && !has_python_ && !nodes_.empty();
}

void StackTable::add(const Record &record) {
  switch (record.type) {
    case Record::Type::meta:
      program_ = record.text("exe");
      break;
    case Record::Type::mod:
      modules_[record.number("id")] = {std::string(record.text("path")), std::string(record.text("build_id"))};
      break;
    case Record::Type::frame: {
      Place &place = places_[record.number("id")];
      place.module = record.number("mod");
      place.offset = record.number("off");
      if (place.module == 0) {
        has_python_ = true;
        place.python.is_python = true;
        place.python.function = record.text("fn");
        place.python.file = record.text("file");
        place.python.line = static_cast<unsigned>(record.number("line"));
        place.python.library = package_of(place.python.file);
        if (place.python.library.empty()) {
          place.python.library = kTheProgram;
        }
      }
      break;
    }
    case Record::Type::stack:
      nodes_[record.number("id")] = {record.number("frame"), record.number("parent")};
      break;
    case Record::Type::names: {
      std::vector<StackFrame> &named = places_[record.number("frame")].named;
      named.clear();  // the reader returns the `names` records twice
      for (const nlohmann::json &each : record.list("calls")) {
        const Record call(each);
        StackFrame &frame = named.emplace_back();
        frame.function = call.text("fn");
        frame.file = call.text("file");
        frame.line = static_cast<unsigned>(call.number("line"));
      }
      break;
    }
    default:
      break;
  }
}

const std::vector<StackFrame> &StackTable::resolve(Place &place) {
  if (!place.resolved.empty()) {
    return place.resolved;
  }
  if (place.module == 0) {
    place.resolved = {place.python};
    return place.resolved;
  }
  const Module &module = modules_[place.module];
  place.resolved = place.named.empty() ? symbols_.at(module, place.offset) : place.named;
  const bool of_program = module.path == program_ && !is_interpreter(program_);
  const std::string library = of_program                    ? kTheProgram
                              : is_interpreter(module.path) ? "Python"
                                                            : library_of(module.path);
  for (StackFrame &frame : place.resolved) {
    frame.library = library;
    frame.module = module.path;
  }
  return place.resolved;
}

std::vector<StackFrame> StackTable::frames(std::uint64_t stack) {
  std::vector<StackFrame> frames;
  for (std::size_t depth = 0; depth < kDeepest; ++depth) {
    const auto node = nodes_.find(stack);
    const auto place = node == nodes_.end() ? places_.end() : places_.find(node->second.place);
    if (place == places_.end()) {
      break;
    }
    const std::vector<StackFrame> &here = resolve(place->second);
    frames.insert(frames.end(), here.begin(), here.end());
    stack = node->second.parent;
  }
  return frames;
}

std::string StackTable::caller(std::uint64_t stack, Lines lines) {
  std::vector<StackFrame> all = frames(stack);
  if (lines == Lines::left_out) {
    for (StackFrame &frame : all) {
      frame.line = 0;
    }
  }
  const auto is_of_program = [this](const StackFrame &frame) {  // without `_start`, which calls main in every program
    return frame.library == kTheProgram && (frame.is_python || !has_python_) && frame.function != "_start";
  };
  const auto named = std::find_if(all.begin(), all.end(), is_of_program);
  if (named != all.end()) {
    std::string name = place_of(*named);
    if (const auto from = std::find_if(std::next(named), all.end(), is_of_program); from != all.end()) {
      name += ", from ";
      name += place_of(*from);
    }
    return name;
  }
  const auto last =
      std::find_if(all.rbegin(), all.rend(), [](const StackFrame &frame) { return !is_plumbing(frame.library); });
  return last != all.rend() ? place_of(*last) : all.empty() ? "" : place_of(all.front());
}

std::string StackTable::library(std::uint64_t stack) {
  const std::vector<StackFrame> all = frames(stack);
  const auto named =
      std::find_if(all.begin(), all.end(), [](const StackFrame &frame) { return !is_plumbing(frame.library); });
  return named == all.end() ? (all.empty() ? "" : all.front().library) : named->library;
}

}  // namespace ration::logs
