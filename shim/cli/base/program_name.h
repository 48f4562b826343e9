// A program's name as shown in text and JSON, without its folder. Layer: cli. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/file_name.h"

namespace ration::cli {

// "/opt/train" is shown as "train", and a `ration run` that waits or holds a guarantee is shown as "ration run train".
inline std::string program_name(std::string_view path) {
  constexpr std::string_view kRun = "ration run ";
  const bool is_run = path.starts_with(kRun);
  const std::string_view name = file_name(path.substr(is_run ? kRun.size() : 0));
  return name.empty() ? std::string(path) : std::string(is_run ? kRun : "").append(name);
}

}  // namespace ration::cli
