// What the variables and the files say, before anything of it is decided. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "config/surroundings.h"

namespace ration::config {

// Of every variable of ours that is set.
std::vector<Statement> variables_said(const Surroundings &surroundings);

struct FilesSaid {
  std::vector<std::string> there;  // the strongest first, like what they say
  bool in_doubt = false;           // one that cannot be read may have limited
};

// Appends what the files say.
FilesSaid files_said(const Surroundings &surroundings, std::vector<Statement> &said, std::vector<Problem> &problems);

}  // namespace ration::config
