#include "cli/usage/plain_names.h"

#include "config/values/quotes.h"

namespace ration::cli {

void make_plain(Usage &usage) {
  for (ProcessRow &row : usage.processes) {
    for (std::string *each : {&row.program, &row.command, &row.user, &row.group_label, &row.here.container}) {
      *each = config::ascii_only(*each);
    }
  }
  for (std::string &problem : usage.problems) {
    problem = config::ascii_only(problem);
  }
  for (GroupRow &row : usage.groups) {
    row.label = config::ascii_only(row.label);
    row.user = config::ascii_only(row.user);
  }
}

}  // namespace ration::cli
