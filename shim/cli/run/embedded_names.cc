#include "cli/run/embedded_names.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cli/run/ended_log.h"
#include "config/values/quotes.h"
#include "logs/output/whole_file.h"
#include "logs/reader/log_input.h"
#include "logs/reader/log_reader.h"
#include "logs/stacks/symbols.h"

namespace ration::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPiece = 1U << 20U;  // how much is copied at once
constexpr const char *kInterrupted = "a signal ended the search for them";
constexpr std::string_view kSeq = "\"seq\":";

// What a log needs names for, and where they are inserted.
struct Places {
  struct Frame {
    std::uint64_t id, module, offset;
  };
  std::string meta;  // the first line
  std::map<std::uint64_t, logs::Module> modules;
  std::vector<Frame> frames;
  std::uint64_t at = 0;  // where `end` starts, or where a log without one ends
  std::string end;       // the last line; empty: there is no `end`
  std::uint64_t seq = 1, ts = 0;
};

class EmbeddedNames {
 public:
  explicit EmbeddedNames(const std::string &folder) : folder_(folder) {}

  // Why the log stays as it is. Empty if it got names, or needs none.
  std::string embed(const std::string &path, std::int64_t pid);

 private:
  static std::string read(const std::string &path, Places &into);
  std::string names(const Places &places);
  std::string copy(const OpenFile &log, const Places &places, const OpenFile &out);

  const std::string &folder_;
  HeldSignals signals_;
  logs::Symbols symbols_;
};

void take(const logs::Record &record, Places &into) {
  if (record.type == logs::Record::Type::mod) {
    into.modules[record.number("id")] = {std::string(record.text("path")), std::string(record.text("build_id"))};
  } else if (record.number("mod") != 0) {
    into.frames.push_back({record.number("id"), record.number("mod"), record.number("off")});
  }
}

// What is wrong with the log; empty if nothing is.
std::string EmbeddedNames::read(const std::string &path, Places &into) {
  logs::LogInput input(path);
  std::string last;
  std::uint64_t bytes = 0;
  for (std::string line; std::getline(input.text(), line); last.swap(line)) {
    if (input.text().eof()) {
      return "it was cut off in its last line";
    }
    if (bytes == 0) {
      into.meta = line;
    }
    if (logs::is_record_of(line, "mod") || logs::is_record_of(line, "frame")) {
      take(logs::record_in(line), into);
    }
    into.at = bytes;
    bytes += line.size() + 1;
  }
  if (!input.problem().empty() || input.text().bad()) {
    return input.problem().empty() ? "it cannot be read" : input.problem();
  }
  const logs::Record record = logs::record_in(last);
  into.ts = record.number("ts");
  into.seq = record.number("seq");
  if (record.type == logs::Record::Type::end && last.rfind(kSeq) != std::string::npos) {
    into.end = std::move(last);
  } else {
    into.at = bytes;
    ++into.seq;
  }
  return "";
}

// The records with names, and `end` with the sequence number that it has after them; empty if nothing has a name.
std::string EmbeddedNames::names(const Places &places) {
  std::string text;
  std::uint64_t seq = places.seq;
  for (const Places::Frame &frame : places.frames) {
    if (signals_.have_come()) {
      break;
    }
    const auto module = places.modules.find(frame.module);
    if (module == places.modules.end() || module->second.path.empty()) {
      continue;
    }
    Json calls = Json::array();
    for (const logs::StackFrame &call : symbols_.at(module->second, frame.offset)) {
      calls.push_back({{"fn", call.function}});
      if (!call.file.empty()) {
        calls.back()["file"] = call.file;
        calls.back()["line"] = call.line;
      }
    }
    if (symbols_.unnamed().count(module->second.path) == 0) {
      const Json record = {
          {"t", "names"}, {"frame", frame.id}, {"calls", std::move(calls)}, {"ts", places.ts}, {"seq", seq++}};
      text += record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
  }
  if (!text.empty() && !places.end.empty()) {
    text += places.end.substr(0, places.end.rfind(kSeq) + kSeq.size()) + std::to_string(seq) + "}\n";
  }
  return text;
}

// Copies everything before `end`, with a `meta` that tells readers that there are names.
std::string EmbeddedNames::copy(const OpenFile &log, const Places &places, const OpenFile &out) {
  const std::string meta = places.meta.substr(0, places.meta.rfind('}'));
  if (!logs::write_all(out.number, meta + ",\"" + std::string(logs::kHasNames) + "\":true}\n")) {
    return std::strerror(errno);
  }
  std::vector<char> piece(kPiece);
  for (std::uint64_t at = places.meta.size() + 1; at < places.at;) {
    if (signals_.have_come()) {
      return kInterrupted;
    }
    const ssize_t got =
        pread(log.number, piece.data(), std::min<std::uint64_t>(piece.size(), places.at - at), static_cast<off_t>(at));
    if (got == 0) {
      return "it has become shorter";
    }
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 || !logs::write_all(out.number, {piece.data(), static_cast<std::size_t>(got)})) {
      return std::strerror(errno);
    }
    at += static_cast<std::uint64_t>(got);
  }
  return "";
}

std::string EmbeddedNames::embed(const std::string &path, std::int64_t pid) {
  const OpenFile log(open_ended(path));
  if (log.number < 0) {
    return errno == ENOENT ? "" : std::strerror(errno);
  }
  struct stat status {};
  if (fstat(log.number, &status) != 0 || !S_ISREG(status.st_mode) || !meta_of_run(path, pid, folder_)) {
    return "";
  }
  Places places;
  const std::string previous = path + ".previous";
  std::string problem = lock_log(log.number, pid);
  if (problem.empty() && meta_of_run(previous, pid, folder_)) {
    problem = read(previous, places);
  }
  if (problem.empty()) {
    problem = read(path, places);
  }
  const bool is_named = logs::record_in(places.meta).has(logs::kHasNames);
  const std::string text = problem.empty() && !is_named ? names(places) : "";
  if (signals_.have_come()) {
    return kInterrupted;
  }
  if (text.empty()) {
    return problem;
  }
  UnfinishedLog unfinished(path);
  const OpenFile &out = unfinished.file();
  if (out.number < 0) {
    return std::strerror(errno);
  }
  problem = copy(log, places, out);
  if (problem.empty() && !logs::write_all(out.number, text)) {
    problem = std::strerror(errno);
  }
  return problem.empty() ? unfinished.replace(path, status) : problem;
}

}  // namespace

std::vector<std::string> embed_names(const std::vector<events::Summary> &summaries, const std::string &folder) {
  EmbeddedNames names(folder);
  std::vector<std::string> lines;
  for (const events::Summary &process : summaries) {
    const std::string problem = process.log.empty() ? "" : names.embed(process.log, process.pid);
    if (!problem.empty()) {
      lines.push_back("run: the log " + config::printable(process.log) +
                      " stays without names of functions: " + problem);
    }
  }
  return lines;
}

}  // namespace ration::cli
