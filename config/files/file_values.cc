#include "config/files/file_values.h"

#include "config/values/option_parsers.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

// Writes {"0": "8GiB", "GPU-1f2e": "50%"} in the syntax of RATION_LIMIT. Leaves out an item that would mean something
// else there.
std::string text_of_devices(const JsonNode &node, std::string &wrong) {
  std::string text;
  for (const JsonNode &item : node.children) {
    const bool one_value = item.kind == JsonNode::Kind::kString || item.kind == JsonNode::Kind::kNumber;
    if (!one_value || (item.key + item.text).find_first_of(",=") != std::string::npos) {
      wrong = "device " + in_quotes(item.key) + R"( needs one size, as "0": "8GiB")";
      continue;
    }
    text += text.empty() ? "" : ",";
    text += item.key + "=" + item.text;
  }
  return text;
}

bool may_be(const Option &option, JsonNode::Kind kind) {
  switch (kind) {
    case JsonNode::Kind::kString:
      return true;
    case JsonNode::Kind::kSwitch:
      return place_of("true", option.values) >= 0;
    case JsonNode::Kind::kNumber:
      return takes_size(option) || place_of("0", option.values) >= 0;
    case JsonNode::Kind::kObject:
      return takes_devices(option);
    default:
      return false;
  }
}

std::string error_in_kind(const Option &option, JsonNode::Kind kind) {
  const std::string values = "; the values are " + std::string(option.values);
  switch (kind) {
    case JsonNode::Kind::kNull:
      return "null is not a value; leave the key out for the default";
    case JsonNode::Kind::kArray:
      return "a list is not a value" + values;
    case JsonNode::Kind::kObject:
      return "it is one value for all devices" + values;
    default:
      return "it must be in quotation marks" + values;
  }
}

std::string text_of(const JsonNode &node) {
  switch (node.kind) {
    case JsonNode::Kind::kNull:
      return "null";
    case JsonNode::Kind::kObject:
      return "{...}";
    case JsonNode::Kind::kArray:
      return "[...]";
    default:
      return node.text;
  }
}

}  // namespace

FileValue value_in_file(const Option &option, const JsonNode &node) {
  FileValue value{text_of(node), {}};
  if (!may_be(option, node.kind)) {
    value.wrong = error_in_kind(option, node.kind);
  } else if (node.kind == JsonNode::Kind::kObject) {
    value.text = text_of_devices(node, value.wrong);
  }
  return value;
}

}  // namespace ration::config
