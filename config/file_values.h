// What a file says of one setting, as its variable would have it. Layer: config. Threads: values.
#pragma once

#include <string>

#include "config/json_tree.h"
#include "config/options.h"

namespace ration::config {

struct FileValue {
  std::string text;   // what its option reads
  std::string wrong;  // why nothing of this kind can be read
};
FileValue value_in_file(const Option &option, const JsonNode &node);

}  // namespace ration::config
