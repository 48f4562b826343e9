// `ration find-faults`: refuses a command's allocations one after the other, and reports which refusals it does not
// survive. Layer: cli.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "cli/base/exit_status.h"
#include "cli/base/file_text.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "cli/find/fault_table.h"
#include "cli/find/repeated_run.h"
#include "cli/find/run_options.h"
#include "cli/run/next_step.h"
#include "cli/run/run_preparation.h"
#include "cli/run/temporary_folder.h"
#include "logs/reader/log_reader.h"

namespace ration::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNoTimeout{0};

// The first deliberate refusal in a log. Its process may have been killed while it wrote any of the lines.
std::optional<RefusedCall> refusal_in(const std::string &log) {
  logs::LogReader reader(log);
  for (logs::Record record; reader.next(record);) {
    if (record.type == logs::Record::Type::oom && record.text("reason") == "fault") {
      return RefusedCall{std::string(record.text("api")), record.number("req"), record.device()};
    }
  }
  return std::nullopt;
}

class FaultFinder {
 public:
  FaultFinder(const FindFaultsRequest &request, const FindOptions &options)
      : request_(request.run), first_(request.first), options_(options), runs_(request.run) {
    if (folder_.path().empty()) {
      throw Refusal{kOurError, "no folder for the logs: neither $TMPDIR, /tmp nor /dev/shm can be written"};
    }
    runs_.environment().unset("RATION_FAIL");
  }

  // Throws Refusal if the search ends early.
  FaultSearch search();

 private:
  struct Run {
    RunEnd end;
    std::string said;  // its output on stdout
    std::optional<RefusedCall> refused;
  };
  // `nth` 0: no allocation is refused.
  Run run(std::uint64_t nth, milliseconds timeout);

  const RunRequest &request_;
  const std::uint64_t first_;
  const FindOptions options_;
  RepeatedRun runs_;
  TemporaryFolder folder_;
};

FaultFinder::Run FaultFinder::run(std::uint64_t nth, milliseconds timeout) {
  TemporaryFolder place(folder_.path());
  const std::string out = place.path() + "/out";
  const std::string err = place.path() + "/err";
  const std::string log = place.path() + "/log";
  const int mode = O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC;
  const int out_file = open(out.c_str(), mode, 0600);
  const int err_file = open(nth == 0 ? err.c_str() : "/dev/null", mode, 0600);
  std::vector<std::string> options;
  if (nth != 0) {
    options = {"--fail=nth=" + std::to_string(nth), "--log=" + log};
  }
  Run done{runs_.run(options, out_file, err_file, timeout), {}, {}};
  close(out_file);
  close(err_file);
  done.said = file_text(out).value_or("");
  if (done.end.our_error != 0) {
    throw Refusal{kOurError, "cannot start a process: " + std::string(std::strerror(done.end.our_error))};
  }
  if (done.end.interrupted_by != 0) {
    throw Refusal{kKilled + done.end.interrupted_by, ""};
  }
  if (nth == 0 && !done.end.succeeded()) {
    std::cerr << file_text(err).value_or("") << std::flush;
    const bool not_started = done.end.status >= kOurError && done.end.status <= kNotFound && !done.end.timed_out;
    throw Refusal{not_started ? done.end.status : kOurError,
                  not_started ? "" : "the command fails with nothing refused: " + end_text(done.end)};
  }
  std::error_code error;
  std::vector<std::string> logs;  // one for each process: log, log.PID …
  for (std::filesystem::directory_iterator entry(place.path(), error), last; !error && entry != last;
       entry.increment(error)) {
    if (const std::string path = entry->path().string(); path.starts_with(log)) {
      logs.push_back(path);
    }
  }
  std::sort(logs.begin(), logs.end());
  for (std::size_t i = 0; i < logs.size() && !done.refused; ++i) {
    done.refused = refusal_in(logs[i]);
  }
  return done;
}

FaultSearch FaultFinder::search() {
  (void)refuse_wrong_line(request_, runs_.environment());
  const Run reference = run(0, options_.timeout.value_or(kNoTimeout));
  const milliseconds timeout = timeout_after(options_.timeout, reference.end.took);
  FaultSearch search;
  search.compares = run(0, timeout).said == reference.said;
  search.is_cut = true;
  for (std::uint64_t nth = 1; nth <= first_; ++nth) {
    const Run done = run(nth, timeout);
    if (!done.refused) {
      search.is_cut = false;
      if (!done.end.succeeded()) {
        log_line("find-faults: a run in which nothing was refused failed: " + end_text(done.end));
      }
      break;
    }
    const bool same = !search.compares || done.said == reference.said;
    search.runs.push_back({nth, *done.refused, done.end, survival_of(done.end, same)});
    if (isatty(STDERR_FILENO) == 1) {
      log_line("find-faults: " + std::to_string(nth) + ": " + done.refused->api + ": " + end_text(done.end));
    }
  }
  return search;
}

}  // namespace

int run_verb(const FindFaultsRequest &request) {
  const auto options = read_find_options(request);
  if (const std::string *wrong = std::get_if<std::string>(&options)) {
    return usage_error("find-faults: " + *wrong, kUsageError);
  }
  try {
    const FaultSearch search = FaultFinder(request, std::get<FindOptions>(options)).search();
    if (request.json) {
      std::cout << fault_json(search, request.run.command) << '\n';
    } else {
      for (const std::string &line : fault_lines(search, output_width())) {
        std::cout << line << '\n';
      }
      if (const FaultRun *worst = search.worst(); worst != nullptr) {
        log_line("find-faults: to see it again: " + again(request.run, "--fail nth=" + std::to_string(worst->nth)));
      }
    }
    return !flush_stdout() ? kOurError : search.is_survived() ? 0 : kDoesNotHold;
  } catch (const Refusal &refusal) {
    if (!refusal.line.empty()) {
      log_error("find-faults: " + refusal.line);
    }
    return refusal.exit_status;
  }
}

}  // namespace ration::cli
