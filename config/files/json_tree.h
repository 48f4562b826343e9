// A JSON text as a tree in which every value has its line and column. Layer: config; the only user of nlohmann_json
// here. Threads: values. Throws only bad_alloc, whatever the text is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

struct JsonPlace {
  std::size_t line = 1, column = 1;  // of a member: of its key; columns count characters, not bytes

  [[nodiscard]] std::string text() const { return std::to_string(line) + ":" + std::to_string(column); }
};

struct JsonNode {
  enum class Kind { kNull, kSwitch, kNumber, kString, kObject, kArray };

  Kind kind = Kind::kNull;
  std::string key;   // of a member
  std::string text;  // a string's value; a number or switch exactly as it is written
  std::vector<JsonNode> children;
  JsonPlace place;
};

struct JsonTree {
  JsonNode root;
  std::string wrong;  // why the text is not accepted; one line, empty: it is
  JsonPlace place;    // of the error
};

// Deeper than any file of settings; a text that is nested deeper is refused.
inline constexpr std::size_t kDeepestJson = 16;
// More than every key in each of as many rules as there may be. A text of more values is refused.
// Design: design/first-use.md#bounded-settings
inline constexpr std::size_t kMostJsonValues = 16384;

JsonTree parse_json(std::string_view text);

}  // namespace ration::config
