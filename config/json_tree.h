// A JSON text as a tree in which every value knows its line. Layer: config; the one door to nlohmann_json here.
// Threads: values. Throws nothing but bad_alloc, whatever the text is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

struct JsonPlace {
  std::size_t line = 1, column = 1;  // of a member its key's; columns count characters, not bytes

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
  std::string wrong;  // where it is no JSON, or not ours to read; one plain line
  JsonPlace place;    // of what is wrong
};

// Deeper than any file of ours: what is nested further is refused.
inline constexpr std::size_t kDeepestJson = 16;

JsonTree parse_json(std::string_view text);

}  // namespace ration::config
