#include "logs/reader/log_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "config/values/quotes.h"
#include "events/json_lines.h"
#include "events/log_file.h"
#include "logs/reader/log_names.h"

namespace ration::logs {
namespace {

using nlohmann::json;
using Type = Record::Type;

constexpr std::size_t kMostDevices = 4096;

constexpr std::array<std::pair<std::string_view, Type>, 15> kTypes = {{{"alloc", Type::alloc},
                                                                       {"free", Type::free},
                                                                       {"slab_alloc", Type::slab_alloc},
                                                                       {"slab_free", Type::slab_free},
                                                                       {"sample", Type::sample},
                                                                       {"wait", Type::wait},
                                                                       {"trim", Type::trim},
                                                                       {"oom", Type::oom},
                                                                       {"dropped", Type::dropped},
                                                                       {"mod", Type::mod},
                                                                       {"frame", Type::frame},
                                                                       {"stack", Type::stack},
                                                                       {"names", Type::names},
                                                                       {"end", Type::end},
                                                                       {"meta", Type::meta}}};

Type type_of(std::string_view name) {
  for (const auto &[known, type] : kTypes) {
    if (known == name) {
      return type;
    }
  }
  return Type::other;
}

// The number at the end of a schema's name; 0 if the schema is not that of a log.
int version_of(std::string_view schema) {
  constexpr std::string_view kName =
      std::string_view(events::kSchema).substr(0, std::string_view(events::kSchema).find('/') + 1);
  int version = 0;
  if (schema.substr(0, kName.size()) == kName) {
    std::from_chars(schema.data() + kName.size(), schema.data() + schema.size(), version);
  }
  return version;
}

bool copy_rest(std::istream &from, std::FILE &into) {
  for (std::string line; std::getline(from, line);) {
    line.append(from.eof() ? 0 : 1, '\n');
    if (std::fwrite(line.data(), 1, line.size(), &into) != line.size()) {
      return false;
    }
  }
  return std::fflush(&into) == 0;
}

bool has_real_devices(const Record &meta) {
  const json &devices = meta.list("devices");
  return devices.size() <= kMostDevices && std::all_of(devices.begin(), devices.end(), [](const json &each) {
           return Record(each).device() < kMostDevices;
         });
}

// Why a first line cannot be used; empty: it can.
std::string problem_of_first(const Record &record) {
  const std::string schema(record.type == Type::meta ? record.text("schema") : "");
  if (schema == events::kSchema) {
    return has_real_devices(record) ? "" : "line 1: no device has such a number";
  }
  return version_of(schema) > version_of(events::kSchema)
             ? "a newer version of Ration wrote it, as " + config::shown(schema) + ": this one reads " + events::kSchema
             : "not a log of Ration: its first line is not a meta record";
}

}  // namespace

bool is_record_of(std::string_view line, std::string_view type) {
  constexpr std::string_view kKey = R"({"t":")";
  return line.substr(0, kKey.size()) == kKey && line.substr(kKey.size(), type.size() + 1) == std::string(type) + '"';
}

Record record_in(const std::string &line) {
  Record record;
  (void)record.read(line);
  record.type = type_of(record.text("t"));
  return record;
}

LogReader::LogReader(const std::string &path) : log_(nullptr), path_(path) {
  const std::string name = present_log(path);
  file_ = std::make_unique<LogInput>(name);
  log_ = &file_->text();
  problem_ = file_->problem();
  files_.push_back(name);
}

std::uint64_t LogReader::bytes() const {
  return file_ != nullptr && file_->is_compressed() ? file_->compressed_bytes() : bytes_;
}

bool LogReader::fail(const std::string &why) {
  problem_ = "line " + std::to_string(lines_) + ": " + why;
  return false;
}

bool LogReader::next_line(Record &record) {
  const bool is_line = static_cast<bool>(std::getline(*log_, line_));
  if (file_ != nullptr && !file_->problem().empty()) {
    problem_ = file_->problem() + (lines_ > 0 ? ", after line " + std::to_string(lines_) : "");
    return false;
  }
  if (!is_line) {
    if (log_->bad()) {
      problem_ = "it cannot be read";
    }
    return false;
  }
  ++lines_;
  bytes_ += line_.size() + 1;
  is_broken_ = !record.read(line_) && !json::accept(line_);
  record.type = type_of(record.text("t"));
  cut_off_line_ = is_cut_off(record) ? lines_ : 0;
  return true;
}

// True if the log ends too early in this line: it is not a complete record, or no newline ends it. After an `end`,
// nothing is missing. A part before the last one does not count here: the next part's first record shows whether it is
// complete.
bool LogReader::is_cut_off(const Record &record) {
  if (last_ != nullptr || record.type == Type::end) {
    return false;
  }
  return log_->eof() || (is_broken_ && log_->peek() == std::istream::traits_type::eof());
}

// Opens the part before the one whose first record is `last`. False: it does not exist, or it belongs to another run.
bool LogReader::read_previous(Record &last) {
  const std::array<std::string, 2> names = names_of_previous(path_);
  return std::any_of(names.begin(), names.end(), [&](const std::string &name) { return open_previous(name, last); });
}

bool LogReader::open_previous(const std::string &path, Record &last) {
  auto previous = std::make_unique<LogInput>(path);
  std::string line;
  if (!previous->problem().empty() || !std::getline(previous->text(), line)) {
    return false;
  }
  Record first;
  if (!first.read(line) || !has_real_devices(first) || first.text("tree") != last.text("tree") ||
      first.number("pid") != last.number("pid") || first.number("start_unix_ns") != last.number("start_unix_ns") ||
      std::max<std::uint64_t>(first.number("part"), 1) + 1 != last.number("part")) {
    return false;
  }
  bytes_ += line.size() + 1;
  files_.push_back(path);
  last_ = std::exchange(file_, std::move(previous));
  log_ = &file_->text();
  first.type = Type::meta;
  last = std::move(first);
  return true;
}

bool LogReader::read_first(Record &record) {
  if (!next_line(record)) {
    if (problem_.empty()) {
      is_empty_ = true;
      problem_ = "it is empty: the program has made no CUDA call, or could not write it";
    }
    return false;
  }
  const bool is_beginning = !line_.empty() && events::kLogBegins.substr(0, line_.size()) ==
                                                  std::string_view(line_).substr(0, events::kLogBegins.size());
  if (is_broken_ && is_beginning) {
    return fail("the log was cut off here");
  }
  problem_ = problem_of_first(record);
  if (!problem_.empty()) {
    return false;
  }
  is_to_look_ahead_ = record.has(kHasNames);
  if (record.number("part") > 1 && !path_.empty()) {
    read_previous(record);
  }
  next_seq_ = record.first_seq();
  return true;
}

// Finds the `names` records in advance: `ration run --embed-names` appends them when the program has ended, but a
// reader needs them from the first stack on. A pipe can be read only once, so the rest of it is copied to a temporary
// file without a name.
void LogReader::look_ahead() {
  is_to_look_ahead_ = false;
  std::string path = files_.empty() ? "" : files_.front() == "-" ? "/dev/stdin" : files_.front();
  std::error_code ignored;
  const bool is_pipe = !path.empty() && !std::filesystem::is_regular_file(path, ignored);
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> rest(is_pipe ? std::tmpfile() : nullptr, &std::fclose);
  if (path.empty() || (is_pipe && rest == nullptr)) {
    return;
  }
  if (is_pipe) {
    problem_ = copy_rest(*log_, *rest) ? file_->problem() : "there is no room for a temporary file";
    if (!problem_.empty()) {
      return;
    }
    path = "/proc/self/fd/" + std::to_string(fileno(rest.get()));
    file_ = std::make_unique<LogInput>(path);
    log_ = &file_->text();
  }
  LogInput file(path);
  for (std::string line; std::getline(file.text(), line);) {
    if (is_record_of(line, "names")) {
      ahead_.push_back(record_in(line));
    }
  }
}

bool LogReader::next(Record &record) {
  if (!problem_.empty()) {
    return false;
  }
  if (lines_ == 0) {
    return read_first(record);
  }
  if (is_to_look_ahead_) {
    look_ahead();
    if (!problem_.empty()) {
      return false;
    }
  }
  if (!ahead_.empty()) {
    record = std::move(ahead_.back());
    ahead_.pop_back();
    return true;
  }
  if (!next_line(record)) {
    if (!problem_.empty() || last_ == nullptr) {
      return false;
    }
    file_ = std::move(last_);  // its first line has already been read
    log_ = &file_->text();
    lines_ = 1;
    if (!next_line(record)) {
      return false;
    }
  }
  if (is_broken_ && cut_off_line_ != 0) {
    return false;
  }
  if (!record.has("t")) {
    return fail("no record: the log was cut off or changed");
  }
  if (record.number("seq") != next_seq_) {
    return fail("records are missing before this one");
  }
  ++next_seq_;
  return record.device() < kMostDevices || fail("no device has such a number");
}

}  // namespace ration::logs
