#include "cli/usage/waiting.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/usage/usage_tables.h"
#include "config/values/quotes.h"
#include "ledger/membership.h"

namespace ration::cli {

namespace {

constexpr std::size_t kMostNamed = 3;

std::uint64_t held_by(const ProcessRow &row) {
  return std::max(row.use.reserved, row.use.guarantee);
}

std::string named(const ProcessRow &row) {
  return config::printable(row.shown_program()) + " (pid " + std::to_string(row.shown_pid()) + ")";
}

// True if the row is covered by a run that has its own row, although that is in another group: the queue.
bool is_covered(const ProcessRow &row, const Usage &usage) {
  const auto covers = [&row](const ProcessRow &run) {
    return run.tree != 0 && run.use.uuid == row.use.uuid && run.use.guarantee != 0 &&
           std::any_of(row.groups.begin(), row.groups.end(), [&run](const GroupOfRow &group) {
             return ledger::tree_number(group.kind, group.name) == run.tree;
           });
  };
  return std::any_of(usage.processes.begin(), usage.processes.end(), covers);
}

bool is_in(const ProcessRow &row, const GroupOfRow &group) {
  return std::any_of(row.groups.begin(), row.groups.end(),
                     [&group](const GroupOfRow &own) { return own.kind == group.kind && own.name == group.name; });
}

// True if the row is ahead in the same queue, that of a group or of all runs without one.
bool is_ahead(const ProcessRow &row, const ProcessRow &waiting) {
  return row.ticket != 0 && row.ticket < waiting.ticket && row.use.waiting != 0 && row.use.uuid == waiting.use.uuid &&
         std::any_of(row.groups.begin(), row.groups.end(),
                     [&waiting](const GroupOfRow &group) { return is_in(waiting, group); });
}

// True if both are covered by one guarantee of a run, which the figures of each include.
bool is_same_run(const ProcessRow &a, const ProcessRow &b) {
  return a.use.guarantee > a.use.reserved && b.use.guarantee > b.use.reserved &&
         std::any_of(a.groups.begin(), a.groups.end(), [&b](const GroupOfRow &group) {
           return group.kind == ledger::GroupKind::kTree && is_in(b, group);
         });
}

// The words for each holder, or for all holders of one run together.
std::vector<std::string> holder_words(const Scarcity &scarcity) {
  std::vector<std::string> all;
  const auto begin = scarcity.holders.begin();
  for (auto at = begin; at != scarcity.holders.end(); ++at) {
    const ProcessRow &holder = **at;
    const auto is_of_its_run = [&holder](const ProcessRow *other) { return is_same_run(holder, *other); };
    if (scarcity.is_queue) {
      all.push_back(named(holder) + " comes first, and waits for " + short_bytes(holder.use.waiting));
    } else if (holder.use.guarantee <= holder.use.reserved) {
      all.push_back(named(holder) + " holds " + short_bytes(holder.use.reserved));
    } else if (std::none_of(begin, at, is_of_its_run)) {
      const auto more = std::count_if(std::next(at), scarcity.holders.end(), is_of_its_run);
      all.push_back(named(holder) +
                    (more == 0 ? " is" : " and " + std::to_string(more) + " more of its run together are") +
                    " guaranteed " + short_bytes(holder.use.guarantee));
    }
  }
  return all;
}

}  // namespace

Scarcity scarcity_for(const Usage &usage, const ProcessRow &waiting) {
  Scarcity scarcity;
  for (const ProcessRow &row : usage.processes) {
    if (is_ahead(row, waiting)) {
      scarcity.holders.push_back(&row);
    }
  }
  if (!scarcity.holders.empty()) {
    scarcity.is_queue = true;
    std::sort(scarcity.holders.begin(), scarcity.holders.end(),
              [](const ProcessRow *a, const ProcessRow *b) { return a->ticket < b->ticket; });
    return scarcity;
  }
  const auto is_full = [&waiting](const GroupRow &group) {
    return group.uuid == waiting.use.uuid && group.limit != ledger::kNoLimit && group.free() < waiting.use.waiting &&
           waiting.is_in(group);
  };
  const auto full = std::find_if(usage.groups.begin(), usage.groups.end(), is_full);
  scarcity.group = full == usage.groups.end() ? "" : full->label;
  for (const ProcessRow &row : usage.processes) {
    if (row.use.uuid == waiting.use.uuid && row.identity != waiting.identity && held_by(row) != 0 &&
        !is_covered(row, usage) && (full == usage.groups.end() || row.is_in(*full))) {
      scarcity.holders.push_back(&row);
    }
  }
  std::stable_sort(scarcity.holders.begin(), scarcity.holders.end(),
                   [](const ProcessRow *a, const ProcessRow *b) { return held_by(*a) > held_by(*b); });
  const DeviceRow *const device = usage.device(waiting.use.uuid);
  scarcity.others = device != nullptr && scarcity.group.empty() ? device->others.value_or(0) : 0;
  return scarcity;
}

std::vector<std::string> waiting_lines(const Usage &usage) {
  std::vector<std::string> lines;
  const GpuNames gpus(usage);
  for (const ProcessRow &row : usage.processes) {
    if (row.use.waiting == 0) {
      continue;
    }
    const Scarcity scarcity = scarcity_for(usage, row);
    std::string line = named(row) + " waits for " + short_bytes(row.use.waiting) +
                       (scarcity.group.empty() ? "" : " of group " + scarcity.group) + " on GPU " +
                       gpus.of(row.use.uuid, row.gpu);
    const char *separator = ": ";
    const std::vector<std::string> holders = holder_words(scarcity);
    for (std::size_t i = 0; i < std::min(holders.size(), kMostNamed); ++i) {
      line += std::exchange(separator, ", ") + holders[i];
    }
    if (holders.size() > kMostNamed) {
      line += " and " + std::to_string(holders.size() - kMostNamed) + " more";
    }
    if (scarcity.others != 0) {
      line += separator + ("others hold " + short_bytes(scarcity.others));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ration::cli
