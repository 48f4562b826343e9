#include "cli/usage/top_parts.h"

#include <algorithm>

#include "base/saturating.h"
#include "cli/base/text_width.h"

namespace ration::cli {

namespace {

constexpr std::size_t kGroupsFrom = 8;      // the fewest lines with which groups are shown
constexpr std::size_t kLeastOfTable = 2;    // the titles and one row
constexpr std::size_t kLeastProcesses = 3;  // if another part is scrolled

void take(std::size_t &part, std::size_t lines, std::size_t wanted, std::size_t &left) {
  const std::size_t more = std::min({lines, minus_or_zero(wanted, part), left});
  part += more;
  left -= more;
}

// Titles without a row are useless, so the part then gets no lines.
void take_table(std::size_t &part, std::size_t lines, std::size_t wanted, std::size_t &left) {
  take(part, lines, wanted, left);
  if (part < kLeastOfTable) {
    left += part;
    part = 0;
  }
}

}  // namespace

TopParts parts_for(const TopParts &wanted, std::size_t lines, TopPart scrolled) {
  TopParts parts;
  std::size_t left = lines;
  take(parts.problems, lines / 4, wanted.problems, left);
  const std::size_t body = left;
  std::size_t groups = body < kGroupsFrom ? 0 : std::max(kLeastOfTable, body / 4);
  std::size_t devices = body * 2 / 5;
  if (scrolled == TopPart::kGroups) {
    groups = std::max(kLeastOfTable, minus_or_zero(body, kLeastProcesses + 1));
    devices = 1;
  } else if (scrolled == TopPart::kDevices) {
    groups = std::min(groups, kLeastOfTable);
    devices = std::max<std::size_t>(1, minus_or_zero(body, kLeastProcesses + groups));
  }
  take_table(parts.groups, groups, wanted.groups, left);
  take(parts.devices, devices, wanted.devices, left);
  take_table(parts.processes, left, wanted.processes, left);
  take(parts.devices, left, wanted.devices, left);
  take_table(parts.groups, left, wanted.groups, left);
  take(parts.problems, left, wanted.problems, left);
  return parts;
}

std::string ShownRows::text() const {
  if (count >= all) {
    return {};
  }
  if (count == 0) {
    return "0/" + std::to_string(all);
  }
  const std::string last = std::to_string(first + count) + "/" + std::to_string(all);
  return count == 1 ? last : std::to_string(first + 1) + "-" + last;
}

ShownRows rows_shown(std::size_t all, std::size_t room, std::size_t first) {
  const std::size_t count = std::min(all, room);
  return {std::min(first, all - count), count, all};
}

std::string with_end(const std::string &line, const std::string &text, std::size_t width) {
  const std::size_t needed = width_of(text) + 1;
  if (text.empty() || needed >= width) {
    return line;
  }
  std::string out = truncate(line, width - needed);
  out.append(width - needed - width_of(out) + 1, ' ');
  return out + text;
}

}  // namespace ration::cli
