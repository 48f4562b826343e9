// A frame of `ration top` that is being built line by line. Layer: cli. Threads: one.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/saturating.h"
#include "cli/base/text_table.h"
#include "cli/usage/bars.h"
#include "cli/usage/top_frame.h"

namespace ration::cli {

class FrameDraft {
 public:
  FrameDraft(std::size_t height, std::size_t width) : height_(height), width_(width) {}

  [[nodiscard]] std::size_t room() const { return minus_or_zero(height_, frame_.lines.size()); }
  [[nodiscard]] std::size_t width() const { return width_; }

  void add(const std::string &line) { frame_.lines.push_back(truncate(line, width_)); }
  void add(const std::string &line, Style style) {  // styles the whole line, up to the edge of the screen
    add(line);
    mark(0, static_cast<std::size_t>(-1), style);
  }
  // Styles a part of the line added last.
  void mark(std::size_t begin, std::size_t width, Style style) {
    frame_.spans.push_back({frame_.lines.size() - 1, begin, width, style});
  }
  void mark_bar(std::size_t begin, const BarFigures &figures, std::size_t width) {
    const BarParts parts = parts_of(figures, width - 2);
    mark(begin + 1, parts.used, Style::kUsed);
    mark(begin + 1 + parts.used, parts.reserved, Style::kReserved);
    mark(begin + 1 + parts.used + parts.reserved, parts.others, Style::kOthers);
  }
  Frame take() { return std::move(frame_); }
  Frame &frame() { return frame_; }

 private:
  std::size_t height_, width_;
  Frame frame_;
};

}  // namespace ration::cli
