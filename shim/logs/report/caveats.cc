#include "logs/report/caveats.h"

#include "cli/base/text_table.h"

namespace ration::logs {

std::string caveat_of_end(bool has_ended, bool was_cut_off) {
  return has_ended ? "" : was_cut_off ? "the log was cut off" : "no end record: killed, or still running";
}

std::string caveat_of_losses(const History &history) {
  if (history.dropped() == 0) {
    return {};
  }
  return "the log lacks " + cli::counted(history.dropped(), "record", "records") +
         (history.has_ended() ? ": the peak and what was not freed are as its end has them, other figures are too low"
                              : ": figures are too low");
}

std::string nothing_requested(bool is_whole) {
  return "no device memory was requested" + as_far_as_it_goes(is_whole);
}

std::string as_far_as_it_goes(bool is_whole) {
  return is_whole ? "" : ", as far as the log goes";
}

}  // namespace ration::logs
