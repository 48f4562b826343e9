#include "cli/run/forwarded_wait.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <iterator>
#include <sstream>

#include "cli/base/exit_status.h"
#include "cli/base/file_text.h"
#include "cli/run/signal_witness.h"

namespace ration::cli {

namespace {

// The kernel sends these to the whole group if a background process reads from or writes to its terminal.
constexpr int kOfBackground[] = {SIGTTIN, SIGTTOU};

// Blocks the forwarded signals and SIGCHLD from before the fork, so that none is lost between fork and wait. Installs
// no handler, which would change what the command inherits. A fault of our own still ends us.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigfillset(&watched_);
    for (const int signal : kOfBackground) {
      sigdelset(&watched_, signal);
    }
    sigprocmask(SIG_BLOCK, &watched_, &inherited_mask_);
    // If SIGCHLD were ignored, the kernel would reap the child itself, and its status would be lost.
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &by_default, &inherited_chld_);
  }
  // Discards signals that arrived after the command's end. They must not end us: the command's exit status counts.
  ~BlockedSignals() {
    const timespec no_wait{};
    while (sigtimedwait(&watched_, nullptr, &no_wait) > 0 || errno == EINTR) {
    }
    restore();
  }
  BlockedSignals(const BlockedSignals &) = delete;
  BlockedSignals &operator=(const BlockedSignals &) = delete;

  // Async-signal-safe, because the child calls it between fork and exec.
  void restore() const {
    sigaction(SIGCHLD, &inherited_chld_, nullptr);
    sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
  }

  siginfo_t wait(const std::function<void()> &meanwhile) const {
    siginfo_t signal{};
    constexpr timespec kFifth{0, 200'000'000};
    while ((meanwhile ? sigtimedwait(&watched_, &signal, &kFifth) : sigwaitinfo(&watched_, &signal)) < 0) {
      if (errno == EAGAIN) {  // otherwise EINTR: we were stopped and continued
        meanwhile();
      }
    }
    return signal;
  }

 private:
  sigset_t watched_, inherited_mask_;
  struct sigaction inherited_chld_;
};

// True if the command got the signal too. The terminal signals its whole foreground group, and so the command. But a
// hang-up goes only to the session's leader, whose end then hangs up the group: if we are the leader, we forward it.
bool command_got(const siginfo_t &signal) {
  const int number = signal.si_signo;
  const bool by_terminal =
      number == SIGINT || number == SIGQUIT || number == SIGTSTP || number == SIGWINCH || number == SIGHUP;
  return by_terminal && signal.si_code == SI_KERNEL && !(number == SIGHUP && getsid(0) == getpid());
}

// Stops us as the signal that was taken would have: not at all if it is ignored, or if nobody could continue the group.
void stop_as_asked() {
  raise(SIGTSTP);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  sigprocmask(SIG_BLOCK, &only, nullptr);
}

void forward(const siginfo_t &signal, pid_t child) {
  if (signal.si_code == SI_QUEUE) {
    sigqueue(child, signal.si_signo, signal.si_value);
  } else {
    kill(child, signal.si_signo);
  }
}

// For a process that has ended but was not waited for yet: true if it is still the program that was started, and has
// itself waited for no process. proc_pid_stat(5) has its name, and the page faults of the processes that it waited for.
bool was_alone(pid_t child, const std::string &path) {
  const std::string line = file_text("/proc/" + std::to_string(child) + "/stat").value_or("");
  const std::size_t begin = line.find('('), end = line.rfind(')');
  if (begin == std::string::npos || end == std::string::npos) {
    return false;
  }
  constexpr std::size_t kLongestName = 15;
  const std::string name = line.substr(begin + 1, end - begin - 1);
  std::istringstream rest(line.substr(end + 1));
  std::string skipped;
  for (int field = 3; field < 10; ++field) {  // state to flags
    rest >> skipped;
  }
  std::uint64_t own_minor = 0, minor = 1, own_major = 0, major = 1;
  rest >> own_minor >> minor >> own_major >> major;
  return rest && minor == 0 && major == 0 && name == path.substr(path.rfind('/') + 1).substr(0, kLongestName);
}

struct Waited {
  int status = 0;
  int signal = 0;
  bool was_alone = false;
};

Waited wait_for(pid_t child, const std::string &path, const BlockedSignals &signals, SignalWitness &witness,
                const std::function<void()> &meanwhile) {
  while (true) {
    siginfo_t end{};  // no WSTOPPED: a stopped command is still running
    if (waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == child) {
      const bool alone = was_alone(child, path);
      int status = 0;
      waitpid(child, &status, 0);
      const int ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      return {ended_by != 0 ? kKilled + ended_by : WEXITSTATUS(status), ended_by, alone};
    }
    const siginfo_t signal = signals.wait(meanwhile);
    if (signal.si_signo == SIGCHLD) {
      continue;
    }
    // The witness is also asked about the terminal's signals. Otherwise it would take a later one, sent only to us, for
    // the one that it saw.
    const bool has_group_got = (signal.si_code != SI_QUEUE && witness.saw(signal.si_signo)) || command_got(signal);
    if (!has_group_got) {
      forward(signal, child);
    } else if (signal.si_signo == SIGTSTP) {
      stop_as_asked();
    }
  }
}

std::vector<char *> as_argv(const std::vector<std::string> &arguments) {
  std::vector<char *> argv;
  for (const std::string &argument : arguments) {
    argv.push_back(const_cast<char *>(argument.c_str()));  // execve(2) promises not to write
  }
  argv.push_back(nullptr);
  return argv;
}

// The child writes the errno of a failed execve; a successful one closes the pipe (O_CLOEXEC). No handler is installed,
// so nothing interrupts the read.
int read_exec_error(int pipe_end) {
  int error = 0;
  const ssize_t count = read(pipe_end, &error, sizeof(error));
  close(pipe_end);
  return count == static_cast<ssize_t>(sizeof(error)) ? error : 0;
}

}  // namespace

Started start_and_wait(const std::string &path, const std::vector<std::string> &arguments,
                       const std::vector<const char *> &environment, bool for_shell,
                       const std::function<void()> &meanwhile) {
  const std::vector<char *> argv = as_argv(arguments);
  std::vector<std::string> shell_arguments = {"/bin/sh", path};
  shell_arguments.insert(shell_arguments.end(), arguments.begin() + 1, arguments.end());
  const std::vector<char *> shell_argv = as_argv(shell_arguments);
  char *const *envp = const_cast<char *const *>(environment.data());

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return {errno, 0, 0};
  }
  const BlockedSignals signals;
  SignalWitness witness;
  const pid_t child = fork();
  if (child == 0) {
    signals.restore();
    execve(path.c_str(), argv.data(), envp);
    if (errno == ENOEXEC && for_shell) {
      execve("/bin/sh", shell_argv.data(), envp);
    }
    const int error = errno;
    const ssize_t ignored = write(ends[1], &error, sizeof(error));
    _exit(ignored < 0 ? kOurError : kNotExecutable);
  }
  const int fork_error = errno;
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return {fork_error, 0, 0};
  }
  Started started;
  started.exec_error = read_exec_error(ends[0]);
  const Waited waited = wait_for(child, path, signals, witness, meanwhile);
  started.exit_status = waited.status;
  started.signal = waited.signal;
  started.was_alone = waited.was_alone;
  return started;
}

}  // namespace ration::cli
