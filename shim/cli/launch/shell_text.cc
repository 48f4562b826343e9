#include "cli/launch/shell_text.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace ration::cli {

namespace {

using Joint = ShellCommand::Joint;

constexpr std::size_t kMostCommands = 2'000;

// Before a command of a list, or instead of one.
constexpr std::string_view kBefore[] = {"if", "then", "elif", "else", "do",   "while",  "until",
                                        "{",  "}",    "fi",   "done", "esac", "coproc", "function"};
// The words after these are no command.
constexpr std::string_view kInstead[] = {"for", "case", "select", "[["};

template <class Words>
bool is_one_of(const Words &words, std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  ShellText read() && {
    while (at_ < text_.size() && found_.commands.size() < kMostCommands) {
      read_next();
    }
    found_.is_plain = found_.is_plain && at_ >= text_.size();
    end_command(Joint::kNext);
    return std::move(found_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n';
  }
  [[nodiscard]] bool follows(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  std::string_view take(std::size_t count) {
    const std::string_view taken = text_.substr(at_, count);
    found_.code += taken;
    at_ += taken.size();
    return taken;
  }

  void append(std::string_view more, bool is_expanded = false) {
    word_ += more;
    has_word_ = true;
    is_expanded_ = is_expanded_ || is_expanded;
  }

  void read_next() {
    const char each = peek();
    if (each == '#' && !has_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (each == ' ' || each == '\t' || each == '\r' || follows("\\\n")) {
      end_word(take(each == '\\' ? 2 : 1) != "\\\n");
    } else if (each == '\\') {
      append(take(std::min<std::size_t>(2, text_.size() - at_)).substr(1));
    } else if (each == '\'') {
      take_single_quoted();
    } else if (each == '"') {
      take_double_quoted();
    } else if (each == '$' || each == '`') {
      take_expansion();
    } else if (each == '<' || each == '>' || follows("&>")) {
      take_redirection();
    } else if (std::string_view("\n;&|()").find(each) != std::string_view::npos) {
      take_operator();
    } else {
      const bool is_brace = each == '{' && !follows("{}") && (has_word_ || std::isspace(peek(1)) == 0);
      const bool is_home = each == '~' && !has_word_;
      append(take(follows("{}") ? 2 : 1), is_brace || is_home || each == '*' || each == '?' || each == '[');
    }
  }

  void take_operator() {
    const char each = peek();
    if (each == '(' || each == ')' || follows(";;") || follows(";&")) {
      found_.is_plain = false;
    }
    const bool is_and = follows("&&");
    const bool is_or = follows("||");
    const bool is_pipe = each == '|' && !is_or;
    const bool is_background = each == '&' && !is_and;
    take(is_and || is_or || follows("|&") || follows(";;") ? 2 : 1);
    end_word();
    if (each == '\n' && command_.words.empty() && here_ends_.empty()) {
      return take_here_documents();  // a list goes on after && and a newline
    }
    command_.is_aside = command_.is_aside || is_pipe;
    end_command(is_and ? Joint::kAnd : is_or ? Joint::kOr : Joint::kNext);
    command_.is_aside = is_pipe;
    if (is_background) {  // the whole list is
      for (std::size_t i = list_begin_; i < found_.commands.size(); ++i) {
        found_.commands[i].is_aside = true;
      }
    }
    list_begin_ = is_and || is_or || is_pipe ? list_begin_ : found_.commands.size();
    if (each == '\n') {
      take_here_documents();
    }
  }

  void take_single_quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    found_.is_plain = found_.is_plain && end != std::string_view::npos;
    const std::string_view quoted = take(std::min(end, text_.size() - 1) - at_ + 1);
    append(quoted.substr(1, end == std::string_view::npos ? std::string_view::npos : quoted.size() - 2));
  }

  void take_double_quoted() {
    take(1);
    append({});
    while (at_ < text_.size() && peek() != '"') {
      if (peek() == '$' || peek() == '`') {
        take_expansion();
      } else if (peek() == '\\' && std::string_view("$`\"\\\n").find(peek(1)) != std::string_view::npos) {
        const std::string_view escaped = take(2).substr(1);
        append(escaped == "\n" ? std::string_view() : escaped);
      } else {
        append(take(1));
      }
    }
    found_.is_plain = found_.is_plain && at_ < text_.size();
    take(1);
  }

  // From $ or ` on.
  void take_expansion() {
    if (follows("$'")) {
      take(1);
      std::size_t end = at_ + 1;
      while (end < text_.size() && text_[end] != '\'') {
        end += text_[end] == '\\' ? 2 : 1;
      }
      append(take(end + 1 - at_), true);
    } else if (follows("$((")) {
      append(take(std::min(text_.find("))", at_), text_.size() - 2) + 2 - at_), true);
    } else if (follows("$(") || peek() == '`') {
      take_substitution();
    } else if (follows("${")) {
      const std::string_view taken = take(length_of_braces());
      append(taken, true);
      found_.is_plain =
          found_.is_plain && taken.find("$(") == std::string_view::npos && taken.find('`') == std::string_view::npos;
    } else {
      std::size_t length = 1;
      while (std::isalnum(static_cast<unsigned char>(peek(length))) != 0 || peek(length) == '_') {
        ++length;
      }
      const bool is_special = length == 1 && std::string_view("@*#?-$!").find(peek(1)) != std::string_view::npos;
      append(take(length + (is_special ? 1 : 0)), length > 1 || is_special);
    }
  }

  [[nodiscard]] std::size_t length_of_braces() const {
    std::size_t length = 2;
    for (std::size_t depth = 1; depth > 0 && at_ + length < text_.size(); ++length) {
      depth += peek(length) == '{' ? 1 : 0;
      depth -= peek(length) == '}' ? 1 : 0;
    }
    return length;
  }

  // $(...) or `...`: its commands are found, too.
  void take_substitution() {
    found_.is_plain = false;
    const bool is_quoted_back = peek() == '`';
    const std::size_t begin = is_quoted_back ? 1 : 2;
    std::size_t length = begin;
    char quote = 0;
    for (int depth = 1; at_ + length < text_.size(); ++length) {
      const char each = peek(length);
      if (quote == 0 && (is_quoted_back ? each == '`' : each == ')' && --depth == 0)) {
        break;
      }
      depth += quote == 0 && each == '(' ? 1 : 0;
      quote = each != '\'' && each != '"' ? quote : quote == 0 ? each : quote == each ? '\0' : quote;
    }
    const std::string_view taken = take(length + 1);
    append(taken, true);
    if (++depth_ < kDeepest) {
      TextReader inner(taken.substr(begin, length - begin));
      inner.depth_ = depth_;
      for (ShellCommand &each : std::move(inner).read().commands) {
        each.is_aside = true;
        found_.commands.push_back(std::move(each));
      }
    }
    --depth_;
  }

  void take_redirection() {
    if (std::all_of(word_.begin(), word_.end(), [](unsigned char each) { return std::isdigit(each) != 0; })) {
      word_.clear();
      has_word_ = false;
    }
    end_word();
    command_.is_fed = command_.is_fed || peek() == '<';
    is_here_document_ = follows("<<") && !follows("<<<");
    found_.is_plain = found_.is_plain && !is_here_document_ && !follows("<(") && !follows(">(");
    take(follows("<<<") || follows("&>>") ? 3 : 1);
    while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '|' || (is_here_document_ && peek() == '-')) {
      take(1);
    }
    is_target_ = true;
  }

  void take_here_documents() {
    for (const auto &[command, end] : std::exchange(here_documents_, {})) {
      std::string body;
      while (at_ < text_.size()) {
        std::string_view line = text_.substr(at_, text_.find('\n', at_) - at_);
        at_ = std::min(at_ + line.size() + 1, text_.size());
        line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
        if (line == end) {
          break;
        }
        body += std::string(line) + "\n";
      }
      if (command < found_.commands.size()) {
        found_.commands[command].input = body;
      }
    }
  }

  void end_word(bool is_over = true) {
    if (!has_word_ || !is_over) {
      return;
    }
    if (std::exchange(is_target_, false)) {
      if (std::exchange(is_here_document_, false)) {
        here_ends_.push_back(word_);
      }
    } else {
      command_.words.push_back((is_expanded_ ? std::string(1, kExpanded) : std::string()) + word_);
    }
    word_.clear();
    has_word_ = is_expanded_ = false;
  }

  void end_command(Joint after) {
    end_word();
    std::vector<std::string> &words = command_.words;
    auto begin = words.begin();
    for (; begin != words.end() && (*begin == "!" || *begin == "time" || is_one_of(kBefore, *begin)); ++begin) {
      found_.is_plain = found_.is_plain && (*begin == "!" || *begin == "time");
      begin += *begin == "function" && begin + 1 != words.end() ? 1 : 0;  // its name
    }
    begin += begin != words.begin() && begin != words.end() && *begin == "-p" ? 1 : 0;  // of time
    if (begin != words.end() && is_one_of(kInstead, *begin)) {
      found_.is_plain = false;
      begin = words.end();
    }
    words.erase(words.begin(), begin);
    for (std::string &end : std::exchange(here_ends_, {})) {
      here_documents_.emplace_back(words.empty() ? kMostCommands : found_.commands.size(), std::move(end));
    }
    if (!words.empty()) {
      found_.commands.push_back(std::move(command_));
    }
    command_ = ShellCommand{};
    command_.before = after;
    is_target_ = false;
  }

  static constexpr int kDeepest = 8;  // substitutions within one another

  const std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  ShellText found_;
  ShellCommand command_;  // up to here
  std::string word_;      // up to here
  bool has_word_ = false, is_expanded_ = false;
  bool is_target_ = false, is_here_document_ = false;  // the next word is that of a redirection
  std::vector<std::string> here_ends_;                 // the lines that end the here-documents of this command
  std::vector<std::pair<std::size_t, std::string>> here_documents_;  // those that begin after this line; their commands
  std::size_t list_begin_ = 0;                                       // the first command of the list
};

}  // namespace

bool is_expanded(std::string_view word) {
  return !word.empty() && word.front() == kExpanded;
}

std::string text_of(std::string_view word) {
  return std::string(word.substr(is_expanded(word) ? 1 : 0));
}

ShellText read_shell_text(std::string_view text) {
  if (text.find(kExpanded) != std::string_view::npos) {
    return {{}, false, {}};
  }
  return TextReader(text).read();
}

std::optional<std::vector<std::string>> simple_command(std::string_view text) {
  ShellText read = read_shell_text(text);
  if (!read.is_plain || read.commands.size() > 1) {
    return std::nullopt;
  }
  std::vector<std::string> words =
      read.commands.empty() ? std::vector<std::string>() : std::move(read.commands.front().words);
  return std::any_of(words.begin(), words.end(), is_expanded) ? std::nullopt : std::optional(std::move(words));
}

bool reads_preload(std::string_view text) {
  return text.find("$LD_PRELOAD") != std::string_view::npos || text.find("${LD_PRELOAD") != std::string_view::npos;
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 0 && std::isdigit(static_cast<unsigned char>(word[0])) == 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](char each) { return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_'; });
}

}  // namespace ration::cli
