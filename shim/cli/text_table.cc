#include "cli/text_table.h"

#include <algorithm>
#include <numeric>

#include "config/values/quotes.h"

namespace ration::cli {

namespace {

constexpr std::size_t kGap = 1;        // between two columns
constexpr std::size_t kLeastKept = 4;  // characters of a column that shrinks

using Cells = std::vector<std::string>;

std::string truncate(std::string text, std::size_t width) {
  if (text.size() > width) {
    text.resize(width);
    if (width > 1) {
      text.back() = '+';
    }
  }
  return text;
}

std::vector<std::size_t> widths_of(const std::vector<Column> &columns, const std::vector<Cells> &rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = columns[i].title.size();
    for (const Cells &row : rows) {
      width = std::max(width, row[i].size());
    }
    widths.push_back(width);
  }
  return widths;
}

// With every column that shrinks at its narrowest.
std::size_t least_width(const std::vector<Column> &columns, const std::vector<std::size_t> &widths) {
  std::size_t total = kGap * (columns.size() - 1);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    total += columns[i].fit == Fit::kShrinks ? std::min(widths[i], kLeastKept) : widths[i];
  }
  return total;
}

void omit(std::vector<std::size_t> &widths, std::vector<Column> &columns, std::vector<Cells> &rows, std::size_t width) {
  while (least_width(columns, widths) > width) {
    const auto yields =
        std::find_if(columns.begin(), columns.end(), [](const Column &column) { return column.fit == Fit::kYields; });
    if (yields == columns.end()) {
      return;
    }
    const auto at = yields - columns.begin();
    columns.erase(yields);
    widths.erase(widths.begin() + at);
    for (Cells &row : rows) {
      row.erase(row.begin() + at);
    }
  }
}

// Takes a character at a time from the widest column that shrinks, until the line fits or no column can shrink more.
void shrink(std::vector<std::size_t> &widths, const std::vector<Column> &columns, std::size_t width) {
  std::size_t total = std::accumulate(widths.begin(), widths.end(), kGap * (columns.size() - 1));
  for (; total > width; --total) {
    std::size_t *widest = nullptr;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].fit == Fit::kShrinks && widths[i] > kLeastKept && (widest == nullptr || widths[i] > *widest)) {
        widest = &widths[i];
      }
    }
    if (widest == nullptr) {
      return;
    }
    --*widest;
  }
}

std::string line_of(const Cells &cells, const std::vector<Column> &columns, const std::vector<std::size_t> &widths,
                    std::size_t width) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string cell = truncate(cells[i], widths[i]);
    const std::string blanks(widths[i] - cell.size(), ' ');
    line += std::string(i == 0 ? 0 : kGap, ' ') + (columns[i].align == Align::kLeft ? cell + blanks : blanks + cell);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return truncate(std::move(line), width);
}

}  // namespace

std::string counted(std::uint64_t count, const std::string &one, const std::string &many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::vector<std::string> table_lines(std::vector<Column> columns, std::vector<Cells> rows, std::size_t width) {
  for (Cells &row : rows) {
    std::transform(row.begin(), row.end(), row.begin(), config::printable);
  }
  Cells &titles = *rows.emplace(rows.begin());
  for (const Column &column : columns) {
    titles.push_back(column.title);
  }
  std::vector<std::size_t> widths = widths_of(columns, rows);
  omit(widths, columns, rows, width);
  shrink(widths, columns, width);
  std::vector<std::string> lines;
  for (const Cells &row : rows) {
    lines.push_back(line_of(row, columns, widths, width));
  }
  return lines;
}

}  // namespace ration::cli
