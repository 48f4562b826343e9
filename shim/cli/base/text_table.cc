#include "cli/base/text_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "config/settings.h"
#include "config/settings_sources.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

constexpr std::size_t kGap = 1;  // between two columns

using Cells = std::vector<std::string>;

std::vector<std::size_t> widths_of(const std::vector<Column> &columns, const std::vector<Cells> &rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = width_of(columns[i].title);
    for (const Cells &row : rows) {
      width = std::max(width, width_of(row[i]));
    }
    widths.push_back(width);
  }
  return widths;
}

bool shrinks(const Column &column) {
  return column.fit == Fit::kShrinks || column.fit == Fit::kShrinksThenYields;
}

// The width of a line in which every shrinking column is at its narrowest.
std::size_t least_width(const std::vector<Column> &columns, const std::vector<std::size_t> &widths) {
  std::size_t total = kGap * (columns.size() - 1);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    total += shrinks(columns[i]) ? std::min(widths[i], columns[i].least) : widths[i];
  }
  return total;
}

void omit(std::vector<std::size_t> &widths, std::vector<Column> &columns, std::vector<Cells> &rows, std::size_t width) {
  while (least_width(columns, widths) > width) {
    auto yields = columns.end();
    for (auto each = columns.begin(); each != columns.end(); ++each) {
      const bool may_yield = each->fit == Fit::kYields || each->fit == Fit::kShrinksThenYields;
      if (may_yield && (yields == columns.end() || each->rank < yields->rank)) {
        yields = each;
      }
    }
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

// Takes one character at a time from the widest column that shrinks, until the line fits or no column can shrink
// further. No column gets narrower than its `least`, unless the line cannot fit otherwise: then four characters.
void shrink(std::vector<std::size_t> &widths, const std::vector<Column> &columns, std::size_t width) {
  const bool is_tight = least_width(columns, widths) > width;
  const auto least = [&](std::size_t i) { return is_tight ? std::size_t{4} : columns[i].least; };
  std::size_t total = std::accumulate(widths.begin(), widths.end(), kGap * (columns.size() - 1));
  for (; total > width; --total) {
    std::size_t *widest = nullptr;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (shrinks(columns[i]) && widths[i] > least(i) && (widest == nullptr || widths[i] > *widest)) {
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
    const std::string blanks(widths[i] - width_of(cell), ' ');
    line += std::string(i == 0 ? 0 : kGap, ' ') + (columns[i].align == Align::kLeft ? cell + blanks : blanks + cell);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return truncate(std::move(line), width);
}

}  // namespace

std::optional<std::size_t> columns_asked() {
  const std::string asked = config::first_of("COLUMNS", config::process_environment());
  std::size_t columns = 0;
  const bool is_number = std::from_chars(asked.data(), asked.data() + asked.size(), columns).ec == std::errc();
  return is_number && columns > 0 ? std::optional(columns) : std::nullopt;
}

std::size_t output_width() {
  winsize size{};
  const bool is_known = isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return columns_asked().value_or(is_known ? size.ws_col : kUnlimitedWidth);
}

std::string counted(std::uint64_t count, const std::string &one, const std::string &many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::string_view first) {
  const std::size_t indent = width_of(first);
  std::vector<std::string> lines = {std::string(first)};
  bool has_word = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) {
      continue;
    }
    const std::size_t used = width_of(lines.back());
    if (has_word && (used >= width || width_of(word) + 1 > width - used)) {
      lines.emplace_back(indent, ' ');
      has_word = false;
    }
    lines.back().append(has_word ? 1 : 0, ' ').append(word);
    has_word = true;
  }
  return lines;
}

std::vector<std::string> fitting(const std::vector<std::string> &lines, std::size_t width) {
  constexpr std::size_t kFurther = 2;
  std::vector<std::string> out;
  for (const std::string &line : lines) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (width_of(line) <= width || width <= kFurther || indent == std::string::npos) {
      out.push_back(line);
      continue;
    }
    const std::size_t first = out.size();
    for (std::string &each : wrapped(line.substr(indent), width - kFurther, std::string(indent, ' '))) {
      out.push_back((out.size() == first ? "" : std::string(kFurther, ' ')) + each);
    }
  }
  return out;
}

Table table_of(std::vector<Column> columns, std::vector<Cells> rows, std::size_t width) {
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
  Table table;
  for (const Cells &row : rows) {
    table.lines.push_back(line_of(row, columns, widths, width));
  }
  for (std::size_t i = 0, begin = 0; i < columns.size() && begin < width; begin += widths[i++] + kGap) {
    table.columns.push_back({columns[i].title, begin, std::min(widths[i], width - begin)});
  }
  return table;
}

std::vector<std::string> table_lines(std::vector<Column> columns, std::vector<Cells> rows, std::size_t width) {
  return table_of(std::move(columns), std::move(rows), width).lines;
}

}  // namespace ration::cli
