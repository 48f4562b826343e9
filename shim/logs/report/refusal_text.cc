#include "logs/report/refusal_text.h"

#include <algorithm>
#include <cstdio>

#include "cli/base/text_table.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "events/event.h"
#include "logs/history/limit_need.h"
#include "logs/report/caveats.h"

namespace ration::logs {
namespace {

constexpr double kNsOfSecond = 1e9;
constexpr std::size_t kHolders = 3;  // shown for a group or device

std::string when(const History::Moment &moment) {
  return "at " + seconds(moment.ts_ns) + ", record " + std::to_string(moment.seq);
}

std::string largest_words(const History::Refusal &refusal) {
  if (refusal.largest.bytes == 0) {
    return "only the driver knows how much was missing";
  }
  const std::string lack = lack_words(refusal);
  return (refusal.count > 1 ? "the largest asked for " : "it asked for ") +
         config::show_exact_bytes(refusal.largest.bytes) +
         (refusal.largest.seq != refusal.first.seq ? " " + when(refusal.largest) : "") +
         (lack.empty() ? "" : ": " + lack);
}

void add_held(Lines &lines, const History::Refusal &refusal) {
  lines.push_back("  the program held " + config::show_exact_bytes(refusal.used) + " then" +
                  (refusal.held.empty() ? "" : ":"));
  for (const auto &[name, group] : refusal.held) {
    lines.push_back("    " + config::show_bytes(group.bytes) + " in " + cli::counted(group.count, "block", "blocks") +
                    " by " + config::printable(name));
  }
  if (refusal.held_by_others.count != 0) {
    lines.push_back("    " + config::show_bytes(refusal.held_by_others.bytes) + " by " +
                    cli::counted(refusal.held_by_others.count, "other", "others"));
  }
}

}  // namespace

std::string seconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f s", static_cast<double>(ns) / kNsOfSecond);
  return text;
}

std::string lack_words(const History::Refusal &refusal) {
  const std::uint64_t asked = refusal.largest.bytes;
  const std::uint64_t least = refusal.reason == "limit" ? events::least_lacking(refusal.used, asked, refusal.limit) : 0;
  if (std::string lack = events::lack_words(refusal.lacking, least, asked, config::show_exact_bytes); !lack.empty()) {
    return lack;
  }
  return refusal.device_free && refusal.largest_free < refusal.largest.bytes
             ? "the largest free piece had " + config::show_exact_bytes(refusal.largest_free)
             : "";
}

std::string reason_words(const std::string &reason) {
  return reason == "limit"        ? "over the limit"
         : reason == "group"      ? "over the group's limit"
         : reason == "device"     ? "the device was full"
         : reason == "pool_holds" ? "the pool was fragmented"
         : reason == "fault"      ? "injected (--fail)"
                                  : config::printable(reason);
}

Lines holder_lines(const History::RefusedBy &by) {
  Lines lines;
  std::uint64_t others = by.group.empty() ? 0 : by.claimed;
  if (!by.group.empty()) {
    lines.push_back("group " + config::printable(by.group) + ": " + config::show_exact_bytes(by.claimed) +
                    " held or kept free, of a limit of " + config::show_exact_bytes(by.limit));
  }
  for (std::size_t i = 0; i < std::min(by.holders.size(), kHolders); ++i) {
    const History::RefusedBy::Holder &holder = by.holders[i];
    others -= std::min(others, std::max(holder.reserved, holder.guarantee));
    lines.push_back(config::printable(holder.program) + " (pid " + std::to_string(holder.pid) + ") " +
                    events::held_words(holder.reserved, holder.guarantee, "held", "kept", config::show_exact_bytes));
  }
  if (by.holders.size() + by.more_holders > kHolders) {
    lines.push_back("and " + cli::counted(by.holders.size() + by.more_holders - kHolders, "other", "others") +
                    (others != 0 ? ": " + config::show_exact_bytes(others) : ""));
  }
  if (by.outside != 0) {
    lines.push_back(config::show_exact_bytes(by.outside) + " were the driver's own, or held outside Ration");
  }
  return lines;
}

void add_refusals(Lines &lines, const History &history, std::size_t device) {
  for (const History::Refusal &each : history.devices()[device].refusals) {
    lines.push_back("");
    lines.push_back("REFUSED on device " + std::to_string(device) + ": " + at_least(history.is_whole()) +
                    cli::counted(each.count, "call", "calls") + " of " + config::printable(each.api) + ", " +
                    reason_words(each.reason) + (each.count > 1 ? "; first " : ", ") + when(each.first));
    lines.push_back("  " + largest_words(each));
    lines.push_back("  " + remedy(each));
    if (const std::string caller = history.stacks().caller(each.stack); !caller.empty()) {
      lines.push_back("  called by " + config::printable(caller));
      const auto &growing = history.devices()[device].growing;
      if (std::any_of(growing.begin(), growing.end(),
                      [&](const auto &grows) { return grows.name == caller && !grows.may_be_loading; })) {
        lines.push_back("  its memory grows through the run, so a larger limit would only delay the refusal");
      }
    }
    add_held(lines, each);
    for (const std::string &line : holder_lines(each.by)) {
      lines.push_back("  " + line);
    }
  }
}

std::string growth_words(const History::Growing &growing, bool is_whole) {
  return config::printable(growing.name) + " grows: the least that it held rose from " +
         config::show_bytes(growing.rise.from) + " to " + config::show_bytes(growing.rise.to) +
         "; its oldest block lived for " + seconds(growing.oldest_ns) +
         (growing.may_be_loading ? ", unless it was still loading: hardly anything was freed" : "") +
         as_far_as_it_goes(is_whole);
}

void add_growth(Lines &lines, const History &history, std::size_t device) {
  const std::vector<History::Growing> &growing = history.devices()[device].growing;
  if (growing.empty()) {
    return;
  }
  lines.push_back("");
  lines.push_back("GROWS through the run, on device " + std::to_string(device) + ":");
  for (const History::Growing &each : growing) {
    lines.push_back("  " + growth_words(each, history.has_ended()));
  }
}

}  // namespace ration::logs
