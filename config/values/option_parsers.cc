#include "config/values/option_parsers.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "config/options.h"
#include "config/values/ascii.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

// Spellings that other programs use. They are refused, and the message names the word that was likely meant.
constexpr std::string_view kMeansTrue = "1 yes Yes YES on On ON True TRUE y Y";
constexpr std::string_view kMeansFalse = "0 no No NO off Off OFF False FALSE n N";

}  // namespace

int place_of(std::string_view value, std::string_view words) {
  for (int place = 0; !words.empty(); ++place) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == value) {
      return place;
    }
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return -1;
}

std::string error_in_choice(std::string_view value, std::string_view words) {
  if (place_of(lower(value), words) >= 0) {
    return "it must be written in lower case: " + lower(value);
  }
  std::string list;
  std::vector<std::string_view> choices;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    choices.push_back(words.substr(begin, end - begin));
    list += list.empty() ? "" : ", ";
    list += choices.back();
    begin = end + 1;
  }
  const std::string_view near = near_word(value, choices);
  return "it must be one of " + list + (near.empty() ? "" : "; likely meant: " + std::string(near));
}

std::string read_bool(std::string_view value, bool &out) {
  if (value == "true" || value == "false") {
    out = value == "true";
    return {};
  }
  std::string wrong = "it must be true or false";
  if (place_of(value, kMeansTrue) >= 0) {
    wrong += "; likely meant: true";
  } else if (place_of(value, kMeansFalse) >= 0) {
    wrong += "; likely meant: false";
  }
  return wrong;
}

std::string read_plain_text(std::string_view value, std::string &out) {
  // A newline in a path is a mistake in a script and would break every message that quotes the path.
  if (std::any_of(value.begin(), value.end(),
                  [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; })) {
    return "it contains a control character";
  }
  out = std::string(value);
  return {};
}

std::string read_milliseconds(std::string_view value, std::chrono::milliseconds &out) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"", 1'000}, {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}};
  constexpr std::int64_t kFinest = 1'000'000'000;  // no unit is so long that a smaller fraction of it would matter
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  std::string_view rest = value.substr(static_cast<std::size_t>(end - value.data()));
  std::int64_t fraction = 0;
  std::int64_t parts = 1;
  if (rest.size() > 1 && rest[0] == '.' && is_digit(rest[1])) {
    for (rest.remove_prefix(1); !rest.empty() && is_digit(rest[0]); rest.remove_prefix(1)) {
      if (parts < kFinest) {
        fraction = 10 * fraction + (rest[0] - '0');
        parts *= 10;
      }
    }
  }
  const auto *unit =
      std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto &each) { return each.first == rest; });
  if (error != std::errc() || !is_digit(value.front()) || unit == std::end(kUnits) ||
      __builtin_mul_overflow(number, unit->second, &number) ||
      __builtin_add_overflow(number, fraction * unit->second / parts, &number)) {
    return "it must be a number of seconds, or have a unit, ms s m h; write, for example, 30 or 5m";
  }
  out = std::chrono::milliseconds(number);
  return {};
}

std::string read_faults(Settings &settings, const Option &, std::string_view value) {
  auto faults = parse_faults(value);
  if (std::string *wrong = std::get_if<std::string>(&faults)) {
    return *wrong;
  }
  settings.fail = std::get<std::vector<Fault>>(std::move(faults));
  return {};
}

std::string read_limit(Settings &settings, const Option &, std::string_view value) {
  return parse_limit(value, settings.limit);
}

std::string read_guarantee(Settings &settings, const Option &, std::string_view value) {
  LimitMap read;
  std::string wrong = parse_limit(value, read);
  if (wrong.empty()) {
    settings.guarantee = std::move(read);
  }
  return wrong;
}

std::string read_preallocate(Settings &settings, const Option &, std::string_view value) {
  if (value == "auto") {
    settings.preallocate = Preallocate::kAuto;
    return {};
  }
  if (value == "true" || value == "false") {
    settings.preallocate = value == "true" ? Preallocate::kTrue : Preallocate::kFalse;
    return {};
  }
  std::variant<Size, std::string> size = parse_size(value);
  if (const std::string *wrong = std::get_if<std::string>(&size)) {
    bool ignored = false;
    const bool a_switch = place_of(value, kMeansTrue) >= 0 || place_of(value, kMeansFalse) >= 0;
    return a_switch ? read_bool(value, ignored) : "it is neither auto, true, false nor a size: " + *wrong;
  }
  settings.preallocate = std::get<Size>(size);
  return {};
}

std::string read_async_preallocate(Settings &settings, const Option &, std::string_view value) {
  if (value == "-1" || value == "0") {
    settings.async_preallocate = value == "-1";
    return {};
  }
  std::variant<Size, std::string> size = parse_size(value);
  if (const std::string *wrong = std::get_if<std::string>(&size)) {
    return "it is neither -1, 0 nor a size: " + *wrong;
  }
  settings.async_preallocate = std::get<Size>(size);
  return {};
}

std::string read_state_directory(Settings &settings, const Option &, std::string_view value) {
  // If the path were relative, processes with different working directories would keep separate ledgers for one group.
  if (value.front() != '/') {
    return "it must be an absolute path, the same folder for all members of a group";
  }
  return read_plain_text(value, settings.state_directory);
}

std::string read_log(Settings &settings, const Option &, std::string_view value) {
  if (value == "-") {
    return "a log goes to a file, and stdout is the program's; write, for example, run.jsonl";
  }
  for (const std::string_view ending : {".gz", ".xz", ".bz2"}) {
    const std::size_t name = value.size() - std::min(value.size(), ending.size());
    if (name > 0 && value[name - 1] != '/' && value.substr(name) == ending) {
      return "a log is compressed by zstd only; write, for example, run.jsonl.zst";
    }
  }
  for (std::size_t i = value.find('%'); i != std::string_view::npos; i = value.find('%', i + 2)) {
    if (i + 1 == value.size() || std::string_view("phn%").find(value[i + 1]) == std::string_view::npos) {
      return in_quotes(value.substr(i, 2)) +
             " is not a placeholder; %p is the process, %h the host, %n the program, %% a percent sign";
    }
  }
  return read_plain_text(value, settings.log);
}

std::string read_diagnostics(Settings &settings, const Option &option, std::string_view value) {
  const std::string_view levels = option.values.substr(0, option.values.rfind(' '));  // without LEVEL:FILE
  const std::size_t colon = value.find(':');
  const int place = place_of(value.substr(0, colon), levels);
  if (place < 0) {
    return error_in_choice(value.substr(0, colon), levels);
  }
  std::string file;
  if (colon != std::string_view::npos) {
    const std::string_view name = value.substr(colon + 1);
    if (std::string wrong = name.empty() ? "a file name must follow the colon" : read_plain_text(name, file);
        !wrong.empty()) {
      return wrong + "; write, for example, debug:ration.log";
    }
  }
  settings.diagnostics = static_cast<DiagnosticLevel>(place);
  settings.diagnostics_file = std::move(file);
  return {};
}

std::string read_disable(Settings &settings, const Option &, std::string_view value) {
  if (value != "1" && value != "0") {
    return "it must be 1 (inert), 0 or empty";
  }
  settings.disabled = value == "1";
  return {};
}

}  // namespace ration::config
