#include "cli/find/repeated_run.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "cli/base/exit_status.h"
#include "config/settings.h"

namespace ration::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kGrace{1'000};  // between a signal that can be caught and SIGKILL
constexpr milliseconds kLeastTimeout{10'000};
constexpr int kTimesFirst = 10;
constexpr int kMostSignals = 64;
constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

std::vector<std::string> words_of(const Flags &flags) {
  std::vector<std::string> words;
  for (const auto &[option, value] : flags) {
    words.emplace_back(option->flag);
    if (!value.empty()) {
      words.back() += "=" + value;
    }
  }
  return words;
}

std::vector<std::string> options_of(const RunRequest &request) {
  std::vector<std::string> words = words_of(request.flags);
  if (request.simulate) {
    words.push_back("--sim=" + *request.simulate);
  }
  return words;
}

std::vector<char *> pointers_to(const std::vector<std::string> &words) {
  std::vector<char *> pointers;
  for (const std::string &word : words) {
    pointers.push_back(const_cast<char *>(word.c_str()));  // execve(2) promises not to write
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Opens stdin anew, with a file position of its own: the runs must not share one.
int open_input() {
  struct stat status {};
  const bool is_file = fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
  return open(is_file ? "/proc/self/fd/0" : "/dev/null", O_RDONLY | O_CLOEXEC);
}

// Runs between fork and exec: only async-signal-safe calls. If we die, `ration run` gets SIGTERM and passes it on.
void become_command(int input, int out, int err, const sigset_t &mask) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  rlimit cores{};
  getrlimit(RLIMIT_CORE, &cores);
  cores.rlim_cur = 0;  // crashes are what we look for; their core files must not fill the disk
  setrlimit(RLIMIT_CORE, &cores);
  dup2(input, STDIN_FILENO);
  const int kept = fcntl(err, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);  // `out` may be our stderr
  dup2(out, STDOUT_FILENO);
  dup2(kept, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

}  // namespace

int RunEnd::signal() const {
  return status > kKilled && status <= kKilled + kMostSignals ? status - kKilled : 0;
}

std::string end_text(const RunEnd &end) {
  if (end.timed_out) {
    return "took longer than " + std::to_string(end.took.count()) + " ms";
  }
  if (const int number = end.signal(); number != 0) {
    std::string text = "killed by signal " + std::to_string(number);
    return text += std::string(" (") + strsignal(number) + ")";
  }
  return "exit status " + std::to_string(end.status);
}

// Blocks the signals that would end us, so that none is lost between two runs, and waits for them or for a child's end.
struct RepeatedRun::Signals {
  Signals() {
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    for (const int number : kEnding) {
      struct sigaction present {};
      if (sigaction(number, nullptr, &present) == 0 && present.sa_handler != SIG_IGN) {  // nohup ignores SIGHUP
        sigaddset(&watched, number);
      }
    }
    sigprocmask(SIG_BLOCK, &watched, &inherited);
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;  // if it were ignored, the kernel would reap children itself
    sigaction(SIGCHLD, &by_default, nullptr);
  }
  ~Signals() { sigprocmask(SIG_SETMASK, &inherited, nullptr); }
  Signals(const Signals &) = delete;
  Signals &operator=(const Signals &) = delete;

  // The next signal other than SIGCHLD; 0 if none came until then, or the child has ended.
  int wait(steady_clock::time_point until) const {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - steady_clock::now()).count();
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t bounded = std::clamp<std::int64_t>(left, 0, 3600 * kSecond);
    const timespec at_most{bounded / kSecond, bounded % kSecond};
    const int number = sigtimedwait(&watched, nullptr, &at_most);
    return number > 0 && number != SIGCHLD ? number : 0;
  }

  sigset_t watched{}, inherited{};
};

RepeatedRun::RepeatedRun(const RunRequest &request)
    : own_options_(options_of(request)),
      command_(request.command),
      environment_(config::process_environment()),
      signals_(std::make_unique<Signals>()) {}

RepeatedRun::~RepeatedRun() = default;

RunEnd RepeatedRun::run(const std::vector<std::string> &options, int out, int err, milliseconds timeout) {
  std::vector<std::string> words = {"ration", "run"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), own_options_.begin(), own_options_.end());
  words.emplace_back("--");
  words.insert(words.end(), command_.begin(), command_.end());
  const std::vector<char *> argv = pointers_to(words);
  const std::vector<const char *> entries = environment_.pointers();
  const int input = open_input();

  RunEnd end;
  const steady_clock::time_point start = steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    become_command(input, out, err, signals_->inherited);
    execve("/proc/self/exe", argv.data(), const_cast<char *const *>(entries.data()));
    _exit(kOurError);
  }
  end.our_error = child < 0 ? errno : 0;
  close(input);
  if (child < 0) {
    return end;
  }
  setpgid(child, child);  // both processes do this, because either may run first
  steady_clock::time_point deadline = timeout.count() == 0 ? steady_clock::time_point::max() : start + timeout;
  int state = 0;
  bool is_ending = false;
  const auto end_it = [&](int number) {
    kill(is_ending ? -child : child, number);  // the first signal goes only to `ration run`, which passes it on
    is_ending = true;
    deadline = steady_clock::now() + kGrace;
  };
  while (waitpid(child, &state, WNOHANG) != child) {
    const int number = signals_->wait(deadline);
    if (number != 0) {
      end.interrupted_by = number;
      end_it(number);
    } else if (steady_clock::now() >= deadline) {
      end.timed_out |= !is_ending;
      end_it(is_ending ? SIGKILL : SIGTERM);
    }
  }
  if (is_ending) {
    kill(-child, SIGKILL);  // ends processes that the command left behind
  }
  end.status = WIFSIGNALED(state) ? kKilled + WTERMSIG(state) : WEXITSTATUS(state);
  end.took = end.timed_out ? timeout : std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
  if (end.interrupted_by == 0) {
    end.interrupted_by = signals_->wait(steady_clock::now());
  }
  return end;
}

milliseconds timeout_after(std::optional<milliseconds> asked, milliseconds first_took) {
  return asked.value_or(std::max(kLeastTimeout, first_took * kTimesFirst));
}

std::string taken_flag(const RunRequest &request, const std::vector<std::string_view> &keys) {
  for (const auto &[option, value] : request.flags) {
    if (std::find(keys.begin(), keys.end(), option->key) != keys.end()) {
      return std::string(option->flag) + " cannot be given: each run has its own";
    }
  }
  return "";
}

std::string in_one_line(const std::vector<std::string> &command) {
  std::string line;
  for (const std::string &word : command) {
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

}  // namespace ration::cli
