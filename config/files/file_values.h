// Turns the JSON value of one setting into the text of its environment variable. Layer: config. Threads: values.
#pragma once

#include <string>

#include "config/files/json_tree.h"
#include "config/options.h"

namespace ration::config {

struct FileValue {
  std::string text;   // the text that the setting's option parses
  std::string wrong;  // why a value of this kind cannot be used; empty if it can
};
FileValue value_in_file(const Option &option, const JsonNode &node);

}  // namespace ration::config
