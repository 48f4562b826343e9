// Turns the JSON value of one setting into the text of its variable. Layer: config. Threads: values.
#pragma once

#include <string>

#include "config/files/json_tree.h"
#include "config/options.h"

namespace ration::config {

struct FileValue {
  std::string text;   // what the setting's option parses
  std::string wrong;  // why no value of this kind can be used; empty: none
};
FileValue value_in_file(const Option &option, const JsonNode &node);

}  // namespace ration::config
