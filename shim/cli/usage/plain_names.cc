#include "cli/usage/plain_names.h"

#include "config/values/quotes.h"

namespace ration::cli {

void make_plain(Usage &usage) {
  for (ProcessRow &row : usage.processes) {
    for (std::string *each : {&row.program, &row.command, &row.user, &row.group_label, &row.here.container}) {
      *each = config::printable(*each);
    }
  }
  for (GroupRow &row : usage.groups) {
    row.label = config::printable(row.label);
    row.user = config::printable(row.user);
  }
}

}  // namespace ration::cli
