#include "logs/check/conditions.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/base/text_table.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "logs/report/caveats.h"
#include "logs/report/refusal_text.h"

namespace ration::logs {
namespace {

using Reasons = std::vector<std::string>;

constexpr std::size_t kMostNamed = 3;
constexpr double kPpmOfPercent = 10'000;

std::string on_device(std::size_t ordinal) {
  return "device " + std::to_string(ordinal) + ": ";
}

Reasons above_peak(const config::LimitMap &most, const History &history) {
  Reasons reasons;
  if (std::string caveat = caveat_of_peak(history); !caveat.empty()) {
    reasons.push_back(std::move(caveat));
  }
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    const History::Device &device = history.devices()[i];
    const std::optional<std::uint64_t> bytes = config::smallest_limit(most, history.identity(i));
    if (bytes && device.peak.bytes > *bytes) {
      reasons.push_back(
          on_device(i) + "peak used " +
          peak_words(history.has_exact_peak(), config::show_exact_bytes(device.peak.bytes), device.peak.bytes) +
          (device.peak.seq != 0 ? " at record " + std::to_string(device.peak.seq) : std::string()) + ", more than " +
          config::show_exact_bytes(*bytes));
    }
  }
  return reasons;
}

// The largest groups of what was never freed.
Reasons leaks(const History &history) {
  Reasons reasons;
  if (!history.has_ended()) {
    reasons.push_back("the log " + std::string(history.was_cut_off() ? "was cut off" : "has no end record") +
                      ": what was freed later is not known");
  }
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    const History::Device &device = history.devices()[i];
    if (device.live_count() == 0) {
      continue;
    }
    const std::vector<History::NamedGroup> groups = History::largest_first(device.live);
    std::string line = on_device(i) + cli::counted(device.live_count(), "block", "blocks") + " not freed, " +
                       config::show_exact_bytes(device.live_bytes) + " in all" +
                       as_far_as_it_goes(history.has_ended()) + ": ";
    for (std::size_t g = 0; g < std::min(groups.size(), kMostNamed); ++g) {
      line += (g == 0 ? "" : ", ") + cli::counted(groups[g].second.count, "block", "blocks") + " of " +
              config::printable(groups[g].first);
    }
    reasons.push_back(groups.size() > kMostNamed ? line + " and others" : line);
  }
  return reasons;
}

Reasons growth(const History &history) {
  Reasons reasons;
  if (history.dropped() != 0 || history.was_cut_off()) {
    reasons.emplace_back("records are missing: whether memory grew is not known");
  }
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    for (const History::Growing &each : history.devices()[i].growing) {
      reasons.push_back(on_device(i) + growth_words(each, history.has_ended()));
    }
  }
  return reasons;
}

Reasons failures(const History &history) {
  Reasons reasons;
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    for (const History::Refusal &each : history.devices()[i].refusals) {
      reasons.push_back(
          on_device(i) + at_least(history.is_whole()) + cli::counted(each.count, "refusal", "refusals") + " of " +
          config::printable(each.api) + ", reason " + config::printable(each.reason) +
          (each.largest.bytes == 0 ? "" : "; the largest request: " + config::show_exact_bytes(each.largest.bytes)));
    }
  }
  if (history.unseen_refusals() != 0) {
    reasons.push_back(cli::counted(history.unseen_refusals(), "refusal", "refusals") + " whose records the log lacks");
  }
  if (history.failed_allocs() != 0) {
    reasons.push_back(cli::counted(history.failed_allocs(), "allocation", "allocations") + " failed in the driver");
  }
  if (history.failed_frees() != 0) {
    reasons.push_back(cli::counted(history.failed_frees(), "free", "frees") + " failed");
  }
  if (history.dropped() != history.left_out()) {
    reasons.push_back("the log lacks " + cli::counted(history.dropped() - history.left_out(), "record", "records") +
                      " that could not be written");
  } else if (!history.has_ended()) {
    reasons.emplace_back(std::string("the log has no end record, which tells whether records were lost") +
                         (reasons.empty() ? ": what is there has no failure" : ""));
  }
  if (history.left_out() != 0) {
    reasons.push_back("the log lacks " + cli::counted(history.left_out(), "record", "records") +
                      " of parts that --log-size has removed: they may have refusals");
  }
  return reasons;
}

Reasons fragmented(double most_percent, const History &history) {
  Reasons reasons;
  if (history.was_cut_off()) {
    reasons.emplace_back(
        "the log was cut off: what it lacks may have refusals, and only these tell how much memory was free");
  }
  if (history.dropped() != 0) {
    reasons.push_back("the log lacks " + cli::counted(history.dropped(), "record", "records") +
                      ": they may have refusals, and only these tell how much memory was free");
  }
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    const double seen = static_cast<double>(history.devices()[i].fragmentation_ppm) / kPpmOfPercent;
    if (seen > most_percent) {
      reasons.push_back(on_device(i) + percent(seen) +
                        " of the free memory was in pieces too small for a request that was refused, more than " +
                        percent(most_percent));
    }
  }
  return reasons;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char each : text) {
    switch (each) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += each;
    }
  }
  return out;
}

}  // namespace

std::string percent(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g%%", value);
  return text;
}

std::vector<Verdict> judge(const Conditions &conditions, const History &history) {
  std::vector<Verdict> verdicts;
  if (conditions.max_peak) {
    verdicts.push_back({"--max-peak", above_peak(*conditions.max_peak, history)});
  }
  if (conditions.no_leaks) {
    verdicts.push_back({"--no-leaks", leaks(history)});
  }
  if (conditions.no_growth) {
    verdicts.push_back({"--no-growth", growth(history)});
  }
  if (conditions.no_failures) {
    verdicts.push_back({"--no-failures", failures(history)});
  }
  if (conditions.max_fragmentation_percent) {
    verdicts.push_back({"--max-fragmentation", fragmented(*conditions.max_fragmentation_percent, history)});
  }
  return verdicts;
}

std::string junit_report(const std::vector<CheckedLog> &logs) {
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const CheckedLog &log : logs) {
    const std::vector<Verdict> &verdicts = log.verdicts;
    const std::string name = escaped(config::printable(log.log));
    const auto failed =
        std::count_if(verdicts.begin(), verdicts.end(), [](const Verdict &each) { return !each.reasons.empty(); });
    text += "<testsuite name=\"" + name + "\" tests=\"" + std::to_string(verdicts.size()) + "\" failures=\"" +
            std::to_string(failed) + "\" errors=\"0\" time=\"" + std::to_string(log.seconds) + "\">\n";
    for (const Verdict &each : verdicts) {
      text += "<testcase classname=\"" + name + "\" name=\"" + escaped(each.condition) + "\"";
      if (each.reasons.empty()) {
        text += "/>\n";
        continue;
      }
      text += "><failure message=\"" + escaped(each.reasons.front()) + "\">";
      for (const std::string &reason : each.reasons) {
        text += escaped(reason) + "\n";
      }
      text += "</failure></testcase>\n";
    }
    text += "</testsuite>\n";
  }
  return text + "</testsuites>\n";
}

}  // namespace ration::logs
