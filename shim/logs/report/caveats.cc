#include "logs/report/caveats.h"

#include "cli/base/text_table.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::logs {

std::string caveat_of_end(bool has_ended, bool was_cut_off) {
  return has_ended     ? ""
         : was_cut_off ? "the log was cut off, as by a full disk"
                       : "no end record: killed, still running, left by _exit or exec, or its disk was full";
}

std::string caveat_of_losses(const History &history) {
  if (history.dropped() == 0) {
    return {};
  }
  const bool is_disk = history.dropped() != history.left_out();
  const std::uint64_t refusals = history.unseen_refusals();
  return "the log lacks " + cli::counted(history.dropped(), "record", "records") +
         (refusals != 0 ? ", " + std::to_string(refusals) + " of them " + (refusals == 1 ? "a refusal" : "refusals")
                        : "") +
         (is_disk ? " (its disk was full, or a file size limit reached)" : "") +
         (history.has_ended()
              ? ": peaks, counts and leaks come from its end record; other figures cover only the records that it has"
              : ": figures cover only the records that it has");
}

std::vector<std::string> caveats_of_names(const History &history) {
  std::vector<std::string> lines;
  if (history.lacks_callers()) {
    lines.emplace_back("recorded without --stacks native (or python): driver functions are shown in place of callers");
  }
  if (history.stacks().lacks_python()) {
    lines.emplace_back("recorded without --stacks python: the interpreter's functions are shown in place of callers");
  }
  for (const auto &[path, why] : history.stacks().unnamed()) {
    lines.push_back("no names of functions in " + config::printable(path) + ": " + why);
  }
  if (history.stacks().is_stripped()) {
    lines.push_back(
        "functions of the program without a name: its file was stripped; leave out strip and -s, or link with "
        "-rdynamic");
  }
  if (!history.stacks().unnamed().empty()) {
    lines.emplace_back("with ration run --embed-names a log has the names itself");
  }
  return lines;
}

std::string caveat_of_peak(const History &history) {
  if (history.has_exact_peak()) {
    return {};
  }
  if (history.was_cut_off()) {
    return "the log was cut off: the peak is unknown";
  }
  const std::string lacks =
      history.dropped() == 0 ? "" : "lacks " + cli::counted(history.dropped(), "record", "records");
  return "the log " + lacks +
         (history.has_ended() ? ""
          : lacks.empty()     ? "has no end record"
                              : " and has no end record") +
         ": the peak is unknown";
}

std::string peak_words(bool is_known, const std::string &shown, std::uint64_t peak) {
  return is_known ? shown : peak == 0 ? "unknown" : "at least " + shown;
}

std::string at_least(bool is_whole) {
  return is_whole ? "" : "at least ";
}

std::string nothing_requested(bool is_whole) {
  return "no device memory was requested" + as_far_as_it_goes(is_whole) + (is_whole ? "" : ": the peak is unknown");
}

std::string as_far_as_it_goes(bool is_whole) {
  return is_whole ? "" : ", as far as the log goes";
}

}  // namespace ration::logs
