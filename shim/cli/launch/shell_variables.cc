#include "cli/launch/shell_variables.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "cli/launch/shell_text.h"
#include "cli/launch/walk_state.h"

namespace ration::cli {

namespace {

bool is_of(std::string_view entry, std::string_view name) {
  entry.remove_prefix(is_expanded(entry) ? 1 : 0);
  return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The length of the NAME at the beginning: a word, or one digit.
std::size_t length_of_name(std::string_view text) {
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0) {
    return 1;
  }
  const auto end = std::find_if_not(text.begin(), text.end(),
                                    [](unsigned char each) { return std::isalnum(each) != 0 || each == '_'; });
  return static_cast<std::size_t>(end - text.begin());
}

std::optional<std::size_t> digit(std::string_view text) {
  return text.size() == 1 && text[0] >= '0' && text[0] <= '9' ? std::optional<std::size_t>(text[0] - '0')
                                                              : std::nullopt;
}

// How many of the arguments a word leaves out that stands for all others: $@, ${@:2}. nullopt if it is none.
std::optional<std::size_t> left_out(std::string_view written) {
  if (written == "$@" || written == "$*" || written == "${@}") {
    return 0;
  }
  const auto first = written.starts_with("${@:") ? digit(written.substr(4, written.size() - 5)) : std::nullopt;
  return first && *first > 0 ? std::optional(*first - 1) : std::nullopt;
}

// $(command -v NAME), and what else looks for one program: its name.
std::optional<std::string> sought_program(std::string_view written) {
  for (const std::string_view search : {"$(command -v ", "$(type -P ", "$(type -p ", "$(which "}) {
    if (written.starts_with(search)) {
      const std::string_view name = written.substr(search.size(), written.size() - search.size() - 1);
      const bool is_plain = !name.empty() && name.find_first_of(" $`'\"|;&<>()") == std::string_view::npos;
      return is_plain ? std::optional(std::string(name)) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

void ShellVariables::erase(std::string_view name) {
  std::erase_if(assigned_, [&](const std::string &each) { return is_of(each, name); });
}

const std::string *ShellVariables::find(std::string_view name) const {
  const auto found =
      std::find_if(assigned_.rbegin(), assigned_.rend(), [&](const auto &each) { return is_of(each, name); });
  return found == assigned_.rend() ? nullptr : &*found;
}

bool ShellVariables::shift(std::string_view count) {
  const std::optional<std::size_t> number = digit(count);
  if (!arguments_ || !number || arguments_->size() < *number) {
    return false;
  }
  arguments_->erase(arguments_->begin(), arguments_->begin() + static_cast<std::ptrdiff_t>(*number));
  return true;
}

std::string ShellVariables::extended_by(const std::string &word) const {
  const std::string written = text_of(word);
  const std::size_t begin = written.find("=$") + 1;
  if (!is_expanded(word) || !written.starts_with(kPreload) || begin == 0) {
    return word;
  }
  const std::size_t braces = written[begin + 1] == '{' ? 1 : 0;
  const std::string_view name =
      std::string_view(written).substr(begin + 1 + braces, written.size() - begin - 1 - 2 * braces);
  const std::string *const last = name == kPreload ? nullptr : find(name);
  return last != nullptr && is_expanded(*last) && reads_preload(*last)
             ? kExpanded + written.substr(0, begin) + last->substr(name.size() + 2)
             : word;
}

ShellVariables::Words ShellVariables::expanded(const std::string &word, const EnvironmentBlock &environment,
                                               bool in_order) const {
  const std::string written = text_of(word);
  if (const auto out = left_out(written); is_expanded(word) && out && arguments_) {
    return {arguments_->begin() + static_cast<std::ptrdiff_t>(std::min(*out, arguments_->size())), arguments_->end()};
  }
  const std::size_t begin = is_assignment(written) ? written.find('=') + 1 : 0;
  const Known known = is_expanded(word) ? text(written.substr(begin), environment, in_order) : std::nullopt;
  const bool is_one_expansion = written.starts_with("${") && written.find('}') == written.size() - 1;
  const bool is_quoted = written.find(' ') != std::string::npos && !is_one_expansion;
  if (!known || begin > 0 || is_quoted) {
    return {known ? written.substr(0, begin) + *known : word};
  }
  std::istringstream parts(*known);
  Words words;
  for (std::string part; parts >> part;) {
    words.push_back(part);
  }
  return words;
}

// LD_PRELOAD and PATH are not known here: whether they keep the library, or a folder, is decided by what extends them.
ShellVariables::Known ShellVariables::value(const std::string &name, const EnvironmentBlock &environment,
                                            bool in_order) const {
  if (name == kPreload || name == "PATH") {
    return std::nullopt;
  }
  if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
    const auto at = static_cast<std::size_t>(name[0] - '0');
    if (at == 0) {
      return script_.empty() ? std::nullopt : Known(script_);
    }
    return arguments_ && at <= arguments_->size() ? Known((*arguments_)[at - 1]) : std::nullopt;
  }
  const std::string *const last = find(name);
  if (last == nullptr) {
    const std::string exported = environment.value(name);
    return exported.empty() ? std::nullopt : Known(exported);
  }
  const bool is_one = in_order || std::all_of(assigned_.begin(), assigned_.end(), [&](const std::string &each) {
                        return !is_of(each, name) || each == *last;
                      });
  return is_expanded(*last) || !is_one ? std::nullopt : Known(last->substr(name.size() + 1));
}

// $(cd "$(dirname "$0")" && pwd), and what else names the folder of the script, or one above it.
ShellVariables::Known ShellVariables::folder_of_script(std::string_view written) const {
  if (script_.empty() || !(has(written, "$0") || has(written, "${0") || has(written, "BASH_SOURCE"))) {
    return std::nullopt;
  }
  constexpr std::string_view kUp = "dirname";
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::absolute(script_, ignored);
  std::size_t at = written.find(kUp);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  for (; at != std::string_view::npos; at = written.find(kUp, at + 1)) {
    folder = folder.parent_path();
  }
  return folder.string();
}

ShellVariables::Known ShellVariables::text(std::string_view written, const EnvironmentBlock &environment,
                                           bool in_order) const {
  std::string out;
  for (std::size_t at = 0; at < written.size();) {
    const std::string_view rest = written.substr(at);
    Known part;
    std::size_t length = 1;
    if (rest.starts_with("$(")) {
      length = rest.rfind(')') + 1;  // where there are several, the text between them is lost
      part = folder_of_script(rest.substr(0, length));
      part = part ? part : sought_program(rest.substr(0, length));
    } else if (rest.starts_with("${")) {
      length = std::min(rest.find('}'), rest.size() - 1) + 1;
      const std::size_t end = 2 + length_of_name(rest.substr(2));
      const std::string_view more = rest.substr(end, length - 1 - end);
      const std::string_view name = rest.substr(2, end - 2);
      const bool has_default = (more.starts_with(":-") || more.starts_with(":=")) && name != kPreload && name != "PATH";
      if (end > 2 && (more.empty() || has_default)) {
        part = value(std::string(name), environment, in_order);
      }
      if (!part && has_default && !has(more, "$") && !has(more, "`")) {
        part = std::string(more.substr(2));
      }
    } else if (rest.starts_with('$')) {
      length = 1 + length_of_name(rest.substr(1));
      part = length > 1 ? value(std::string(rest.substr(1, length - 1)), environment, in_order) : std::nullopt;
    } else if (at == 0 && (rest == "~" || rest.starts_with("~/"))) {
      part = environment.value("HOME");
    } else if (std::string_view("`'*?[{~").find(rest[0]) == std::string_view::npos) {
      part = std::string(1, rest[0]);
    }
    if (!part) {
      return std::nullopt;
    }
    out += *part;
    at += length;
  }
  return out;
}

}  // namespace ration::cli
