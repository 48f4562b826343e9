// A JSON text as a tree in which every value has its line and column. Layer: config; nothing else here uses
// nlohmann_json. Threads: values. Throws only bad_alloc, whatever the text is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

struct JsonPlace {
  std::size_t line = 1, column = 1;  // for a member, the position of its key; columns count characters, not bytes

  [[nodiscard]] std::string text() const { return std::to_string(line) + ":" + std::to_string(column); }
};

struct JsonNode {
  enum class Kind { kNull, kSwitch, kNumber, kString, kObject, kArray };

  Kind kind = Kind::kNull;
  std::string key;   // only for a member of an object
  std::string text;  // the value of a string; a number, true or false exactly as written
  std::vector<JsonNode> children;
  JsonPlace place;
};

struct JsonTree {
  JsonNode root;
  std::string wrong;  // why the text is refused, in one line; empty if it is accepted
  JsonPlace place;    // position of the error
};

// No settings file needs deeper nesting, so text with deeper nesting is refused.
inline constexpr std::size_t kDeepestJson = 16;
// Exceeds the number of values in a file with every key and the most rules; text with more values is refused.
// Design: design/first-use.md#bounded-settings
inline constexpr std::size_t kMostJsonValues = 16384;

JsonTree parse_json(std::string_view text);

}  // namespace ration::config
