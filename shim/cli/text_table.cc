#include "cli/text_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "config/values/quotes.h"

namespace ration::cli {

namespace {

constexpr std::size_t kGap = 1;  // between two columns

using Cells = std::vector<std::string>;

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

// How long the character at `at` is, where it is whole, the shortest way to write it, and no control character; else 0.
std::size_t length_of_character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const std::size_t length = first >= 0xf0U && first < 0xf5U ? 4 : first >= 0xe0U ? 3 : first >= 0xc2U ? 2 : 0;
  if (first >= 0xf5U || length == 0 || length > text.size() - at) {
    return 0;
  }
  for (std::size_t i = at + 1; i < at + length; ++i) {
    if (!continues(text[i])) {
      return 0;
    }
  }
  const unsigned char second = byte(at + 1);
  const bool is_bad = (first == 0xc2U && second < 0xa0U) ||   // control characters
                      (first == 0xe0U && second < 0xa0U) ||   // too long
                      (first == 0xedU && second >= 0xa0U) ||  // half of a pair
                      (first == 0xe2U && second == 0x80U && byte(at + 2) >= 0xa8U && byte(at + 2) <= 0xaeU) ||
                      (first == 0xe2U && second == 0x81U && byte(at + 2) >= 0xa6U && byte(at + 2) <= 0xa9U) ||
                      (first == 0xf0U && second < 0x90U) || (first == 0xf4U && second >= 0x90U);
  return is_bad ? 0 : length;  // those of e2 80 and e2 81 end lines or turn the text's direction
}

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

// With every column that shrinks at its narrowest.
std::size_t least_width(const std::vector<Column> &columns, const std::vector<std::size_t> &widths) {
  std::size_t total = kGap * (columns.size() - 1);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    total += columns[i].fit == Fit::kShrinks ? std::min(widths[i], columns[i].least) : widths[i];
  }
  return total;
}

void omit(std::vector<std::size_t> &widths, std::vector<Column> &columns, std::vector<Cells> &rows, std::size_t width) {
  while (least_width(columns, widths) > width) {
    auto yields = columns.end();
    for (auto each = columns.begin(); each != columns.end(); ++each) {
      if (each->fit == Fit::kYields && (yields == columns.end() || each->rank < yields->rank)) {
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

// Takes a character at a time from the widest column that shrinks, until the line fits or no column can shrink more.
// Each down to its least; below that, to four characters, only where no column may yield.
void shrink(std::vector<std::size_t> &widths, const std::vector<Column> &columns, std::size_t width) {
  const bool is_tight = least_width(columns, widths) > width;
  const auto least = [&](std::size_t i) { return is_tight ? std::size_t{4} : columns[i].least; };
  std::size_t total = std::accumulate(widths.begin(), widths.end(), kGap * (columns.size() - 1));
  for (; total > width; --total) {
    std::size_t *widest = nullptr;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].fit == Fit::kShrinks && widths[i] > least(i) && (widest == nullptr || widths[i] > *widest)) {
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

std::size_t output_width() {
  winsize size{};
  const bool known = isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUnlimitedWidth;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return !continues(byte); }));
}

std::string truncate(std::string text, std::size_t width) {
  if (width_of(text) <= width) {
    return text;
  }
  std::size_t kept = 0;
  std::size_t bytes = 0;
  for (const std::size_t most = width > 1 ? width - 1 : width; bytes < text.size(); ++bytes) {
    kept += continues(text[bytes]) ? 0 : 1;
    if (kept > most) {
      break;
    }
  }
  text.resize(bytes);
  return width > 1 ? text + '+' : text;
}

std::string readable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = static_cast<unsigned char>(text[at]) < 0x80U ? 0 : length_of_character(text, at);
    out += length != 0 ? std::string(text.substr(at, length)) : config::printable(text.substr(at, 1));
    at += std::max<std::size_t>(length, 1);
  }
  return out;
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

Table table_of(std::vector<Column> columns, std::vector<Cells> rows, std::size_t width) {
  for (Cells &row : rows) {
    std::transform(row.begin(), row.end(), row.begin(), readable);
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
