#include "cli/usage/device_lines.h"

#include <algorithm>

#include "base/saturating.h"
#include "cli/usage/usage_tables.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

constexpr std::size_t kLeastBar = 12;  // the shortest bar next to full sentences; below that, figures get shorter
constexpr std::size_t kShortestBar = 5;
constexpr std::size_t kLeastHistory = 8;
constexpr std::size_t kWide = 100;    // from this width on, names and history are shown
constexpr std::size_t kWidest = 160;  // from this width on, UUIDs are shown beside names

}  // namespace

// Brevity 0 shows all figures, 1 omits those that nvidia-smi shows too, 2 also omits the words.
void DeviceLines::write_figures(int brevity) {
  figures_.clear();
  figures_width_ = 0;
  for (const DeviceRow &row : usage_.devices) {
    const std::string size = row.size == 0 ? "" : std::string(" of ") + short_bytes(row.size);
    std::string text = brevity < 1 ? short_bytes(row.used) + " used, " : "";
    text += short_bytes(row.reserved) + (brevity < 2 ? " reserved" : row.free && row.others ? "" : size);
    if (row.free && row.others) {
      text += (brevity < 2 ? ", " : " + ") + short_bytes(*row.others) + " others, " + short_bytes(*row.free) + " free";
    }
    text += brevity < 2 ? size : "";
    if (brevity < 1) {
      text += row.utilisation ? ", " + std::to_string(*row.utilisation) + "%" : "";
      text += row.temperature ? ", " + std::to_string(*row.temperature) + "C" : "";
    }
    figures_width_ = std::max(figures_width_, text.size());
    figures_.push_back(std::move(text));
  }
}

std::size_t DeviceLines::room_in(std::size_t width) const {
  const std::size_t text = name_width_ + figures_width_ + 2;
  return minus_or_zero(width, text);
}

// The bar gets the width that the figures leave, or half of it on a wide screen; history gets the other half. History
// needs characters of different heights.
DeviceLines::DeviceLines(const Usage &usage, const TopState &state, std::size_t width) : usage_(usage), state_(state) {
  const GpuNames gpus(usage);
  for (const DeviceRow &row : usage.devices) {
    names_.emplace_back("GPU ").append(gpus.of(row.uuid, row.gpu));
    if (row.gpu != kNoIndex && width >= kWide) {
      names_.back().append(row.name.empty() ? "" : " " + config::printable(row.name));
      names_.back().append(row.name.empty() || width >= kWidest ? " " + gpus.mark_of(row.uuid) : "");
    }
    name_width_ = std::max(name_width_, names_.back().size());
  }
  write_figures(0);
  for (int brevity = 1; brevity < 3 && room_in(width) < kLeastBar; ++brevity) {
    write_figures(brevity);
  }
  const std::size_t left = room_in(width);
  const bool has_history = state.is_unicode && width >= kWide && left / 2 > kLeastHistory;
  bar_width_ = left < kShortestBar ? 0 : has_history ? left / 2 : left;
  history_width_ = has_history ? left - bar_width_ - 1 : 0;
}

void DeviceLines::add(FrameDraft &draft, std::size_t number) const {
  const DeviceRow &row = usage_.devices[number];
  const BarFigures bar{row.used, row.reserved, row.size, row.others.value_or(0)};
  std::string line = names_[number];
  line.resize(name_width_ + 1, ' ');
  if (bar_width_ != 0) {
    line += bar_of(bar, bar_width_, state_.is_unicode) + " ";
  }
  line.append(figures_width_ - figures_[number].size(), ' ');
  line += figures_[number];
  const std::size_t before_history = width_of(line) + 1;
  if (history_width_ != 0) {
    line.append(" ").append(sparkline_of(state_.history.of(row.uuid), row.size, history_width_));
  }
  line.erase(line.find_last_not_of(' ') + 1);
  draft.add(line);
  draft.mark(0, name_width_, Style::kStrong);
  if (bar_width_ != 0) {
    draft.mark_bar(name_width_ + 1, bar, bar_width_);
  }
  if (history_width_ != 0) {
    draft.mark(before_history, history_width_, Style::kHistory);
  }
}

}  // namespace ration::cli
