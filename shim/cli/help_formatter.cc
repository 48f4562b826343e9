#include "cli/help_formatter.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "cli/base/text_table.h"
#include "cli/manual/description.h"

namespace ration::cli {

namespace {

constexpr std::size_t kHelpWidth = 80;  // on wider terminals too: longer lines are hard to read
constexpr std::size_t kFirstExamples = 4;
constexpr std::size_t kOptionColumn = 24;     // the column in which the texts of options and arguments begin
constexpr std::size_t kLongestInColumn = 38;  // the longest term in the first column of a footer's list
constexpr std::size_t kBelow = 6;             // the indent of a text below its term
constexpr char kUnbroken = '\x01';            // a blank at which a line must not be broken

struct Entry {
  std::string term, text;
};

// Keeps `code` on one line: half of a command, copied from a help text, would be a different command.
std::string with_code_unbroken(std::string text) {
  bool is_code = false;
  for (char &each : text) {
    is_code = is_code != (each == '`');
    each = is_code && each == ' ' ? kUnbroken : each;
  }
  return text;
}

std::string filled(const std::string &text, const std::string &first) {
  std::string out;
  for (std::string &line : wrapped(with_code_unbroken(text), columns_asked().value_or(kHelpWidth), first)) {
    std::replace(line.begin(), line.end(), kUnbroken, ' ');
    out += line + "\n";
  }
  return out;
}

// Puts the text into a column of its own; below the term if the term reaches into that column.
std::string entry_lines(const Entry &entry, std::size_t column) {
  std::string term = "  " + entry.term;
  if (entry.text.empty()) {
    return term + "\n";
  }
  const std::string indent(column, ' ');
  if (term.size() + 2 > column) {
    return term + "\n" + filled(entry.text, indent);
  }
  term.resize(column, ' ');
  return filled(entry.text, term);
}

// Puts terms and texts side by side if that suits most entries; otherwise each text goes below its term.
std::string list_lines(const std::vector<Entry> &entries) {
  std::size_t widest = 0;
  std::ptrdiff_t fitting = 0;  // entries that fit, minus those that do not
  for (const Entry &each : entries) {
    const bool fits = each.term.size() <= kLongestInColumn;
    if (!each.text.empty()) {
      widest = fits ? std::max(widest, each.term.size()) : widest;
      fitting += fits ? 1 : -1;
    }
  }
  const std::size_t column = fitting >= 0 ? widest + 4 : kBelow;
  std::string out;
  for (const Entry &each : entries) {
    out += entry_lines(each, column);
  }
  return out;
}

Entry entry_of_line(const std::string &line) {
  const std::string words = line.substr(line.find_first_not_of(' '));
  const std::size_t gap = words.find("  ");
  const std::size_t text = words.find_first_not_of(' ', gap);
  return text == std::string::npos ? Entry{words, {}} : Entry{words.substr(0, gap), words.substr(text)};
}

std::string filled_paragraph(const std::string &paragraph) {
  std::string out;
  std::string text;
  std::vector<Entry> entries;
  const auto flush = [&] {
    out += text.empty() ? "" : filled(text, "");
    out += entries.empty() ? "" : list_lines(entries);
    text.clear();
    entries.clear();
  };
  std::istringstream lines(paragraph);
  for (std::string line; std::getline(lines, line);) {
    const bool is_entry = line.starts_with("  ");
    if (is_entry ? !text.empty() : !entries.empty()) {
      flush();
    }
    if (is_entry) {
      entries.push_back(entry_of_line(line));
    } else {
      text += (text.empty() ? "" : " ") + line;
    }
  }
  flush();
  return out;
}

// -o, --output FILE
std::string option_term(const CLI::Option &option) {
  std::string term;
  for (const std::string &name : dashed_names(option)) {
    term += (term.empty() ? "" : ", ") + name;
  }
  if (option.get_items_expected_max() == 0) {
    return term;
  }
  const std::string value = option.get_type_name();
  return term + (value.starts_with("[=") ? "" : " ") + value + (repeats(option) ? "..." : "");
}

std::string option_text(const CLI::Option &option) {
  std::string text = option.get_description();
  text += option.get_required() ? " (required)" : "";
  std::vector<std::string> others;
  for (const CLI::Option *other : option.get_excludes()) {
    others.push_back(dashed_names(*other).back());
  }
  std::sort(others.begin(), others.end());  // CLI11 sorts them by address
  for (const std::string &other : others) {
    text += (other == others.front() ? " (not with " : ", ") + other;
  }
  return text + (others.empty() ? "" : ")");
}

std::vector<const CLI::Option *> shown_options(const CLI::App &app, bool positional) {
  return app.get_options([positional](const CLI::Option *option) {
    return !option->get_group().empty() && option->get_positional() == positional;
  });
}

std::string argument_term(const CLI::Option &option) {
  return option.get_name(true) + (repeats(option) ? "..." : "");
}

std::string arguments_of(const CLI::App &app) {
  std::string line;
  for (const CLI::Option *each : shown_options(app, true)) {
    const std::string term = argument_term(*each);
    line += " ";
    line += each->get_required() ? term : "[" + term + "]";
  }
  return line;
}

std::vector<const CLI::App *> verbs_of(const CLI::App &app) {
  return app.get_subcommands([](const CLI::App *) { return true; });
}

// One list for each group of verbs, all with the same column widths.
std::string verb_lists(const std::vector<const CLI::App *> &verbs) {
  std::size_t widest = 0;
  for (const CLI::App *each : verbs) {
    widest = std::max(widest, each->get_name().size());
  }
  std::string out;
  std::string group;
  for (const CLI::App *each : verbs) {
    if (each->get_group() != group) {
      group = each->get_group();
      out += "\n" + group + ":\n";
    }
    out += entry_lines({each->get_name(), each->get_description()}, widest + 4);
  }
  return out;
}

// The part of the footer with the first examples and the exit status.
std::string first_of_footer(const std::string &footer) {
  std::string first;
  for (std::size_t begin = 0; begin < footer.size();) {
    const std::size_t end = std::min(footer.find("\n\n", begin), footer.size());
    std::string paragraph = footer.substr(begin, end - begin);
    if (paragraph.starts_with("Examples:")) {
      std::size_t lines = 0;
      const auto is_last = [&](char each) { return each == '\n' && ++lines > kFirstExamples; };
      paragraph.erase(std::find_if(paragraph.begin(), paragraph.end(), is_last), paragraph.end());
      first += paragraph;
    } else if (paragraph.starts_with("Exit status:")) {
      first += "\n\n" + paragraph;
    }
    begin = end + 2;
  }
  return first;
}

// The first of the verb's examples, which shows its commonest use.
std::string commonest_use(const CLI::App &verb) {
  std::istringstream lines(verb.get_footer());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ration " + verb.get_name())) {
      return "Example: " + entry_of_line(line).term;
    }
  }
  return "";
}

}  // namespace

std::string filled_footer(const std::string &footer) {
  std::string out;
  for (std::size_t begin = 0; begin < footer.size();) {
    const std::size_t end = std::min(footer.find("\n\n", begin), footer.size());
    out += "\n" + filled_paragraph(footer.substr(begin, end - begin));
    begin = end + 2;
  }
  return out;
}

std::string HelpFormatter::make_help(const CLI::App *app, std::string, CLI::AppFormatMode mode) const {
  const std::vector<const CLI::App *> verbs = verbs_of(*app);
  std::string usage = "Usage: ration";
  usage += app->get_parent() == nullptr ? "" : " " + app->get_name();
  usage += " [OPTIONS]";
  usage += !arguments_.empty() ? " " + arguments_ : verbs.empty() ? arguments_of(*app) : " [VERB]";
  std::string out = filled(app->get_description(), "") + filled(usage, "");
  out += verbs.empty() ? filled(commonest_use(*app), "") : "";
  const auto positionals = shown_options(*app, true);
  out += positionals.empty() ? "" : "\nPositionals:\n";
  for (const CLI::Option *each : positionals) {
    out += entry_lines({argument_term(*each), each->get_description()}, kOptionColumn);
  }
  const bool all = first_.empty() || mode == CLI::AppFormatMode::All;
  out += verbs.empty() ? "" : verb_lists(verbs);
  out += options_of(*app, all);
  if (!all) {
    out += "\n" + filled("`ration " + app->get_name() + " --help-all` has all options.", "");
  }
  // A verb with options of its own explains itself in the text that follows them.
  const bool is_short = !all && app->get_name() == "run";
  return out + filled_footer(is_short ? first_of_footer(app->get_footer()) : app->get_footer());
}

std::string HelpFormatter::options_of(const CLI::App &app, bool all) const {
  std::string out;
  std::vector<std::string> headings;
  const std::vector<const CLI::Option *> options = shown_options(app, false);
  for (const CLI::Option *option : options) {
    if (std::find(headings.begin(), headings.end(), option->get_group()) == headings.end()) {
      headings.push_back(option->get_group());
    }
  }
  std::rotate(headings.begin(), headings.begin() + (headings.size() > 1 ? 1 : 0), headings.end());  // --help comes last
  for (const std::string &heading : headings) {
    std::string lines;
    for (const CLI::Option *option : options) {
      const bool is_shown =
          all || std::find(first_.begin(), first_.end(), dashed_names(*option).back()) != first_.end();
      if (option->get_group() == heading && is_shown) {
        lines += entry_lines({option_term(*option), option_text(*option)}, kOptionColumn);
      }
    }
    out += lines.empty() ? "" : "\n" + heading + ":\n" + lines;
  }
  return out;
}

}  // namespace ration::cli
