#include "cli/usage/top_action.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <iterator>
#include <string_view>

#include "cli/base/text_width.h"
#include "cli/run/driver_probe.h"
#include "cli/usage/snapshot.h"
#include "config/settings.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

struct NamedSignal {
  std::string_view name;
  int number;
};
constexpr NamedSignal kSignals[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"KILL", SIGKILL}, {"HUP", SIGHUP},
                                    {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"STOP", SIGSTOP},
                                    {"CONT", SIGCONT}, {"ABRT", SIGABRT}, {"ALRM", SIGALRM}};

constexpr std::size_t kMostOfName = 30;

std::string send(const TopQuestion &question, const Usage &usage) {
  const auto is_it = [&](const ProcessRow &row) { return row.identity == question.target.identity; };
  const auto row = std::find_if(usage.processes.begin(), usage.processes.end(), is_it);
  if (row == usage.processes.end()) {
    return question.target.name + " has ended";
  }
  if (row->here.pid == 0 && row->pid_namespace != own_pid_namespace()) {
    return question.target.name + " is in a container, and cannot be signalled from here";
  }
  if (kill(row->shown_pid(), signal_called(question.text)) != 0) {
    return question.target.name + " was not signalled: " + std::strerror(errno);
  }
  return question.target.name + " was sent " + question.text;
}

}  // namespace

TopTarget target_of(const ProcessRow &row) {
  if (row.is_others) {
    return {};
  }
  const std::string pid = std::to_string(row.shown_pid());
  return {"process " + pid + " (" + config::printable(truncate(row.shown_command(), kMostOfName)) + ")", pid,
          row.identity};
}

TopTarget target_of(const GroupRow &row) {
  const char *const kind = row.kind == ledger::GroupKind::kTree        ? "tree:"
                           : row.kind == ledger::GroupKind::kContainer ? "container:"
                                                                       : "group:";
  return {"group " + row.label, kind + row.name, 0};
}

std::string line_of(const TopQuestion &question) {
  const std::string text = config::printable(question.text);
  if (question.is_sure) {
    return (question.is_signal ? "y/n: send " + text + " to " : "y/n: set the limit to " + text + " for ") +
           question.target.name;
  }
  return (question.is_signal ? "signal to " : "limit of ") + question.target.name + ": " + text +
         "_  Enter goes on  Esc leaves";
}

int signal_called(const std::string &text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    return number > 0 && number <= SIGRTMAX ? number : 0;
  }
  std::string_view name = text;
  name.remove_prefix(name.starts_with("SIG") ? 3 : 0);
  const auto has_it = [name](const NamedSignal &each) { return each.name == name; };
  const auto found = std::find_if(std::begin(kSignals), std::end(kSignals), has_it);
  return found == std::end(kSignals) ? 0 : found->number;
}

// `ration set`, in a separate process, makes the change and reports errors; its output is returned.
std::string carry_out(const TopQuestion &question, const Usage &usage) {
  if (question.is_signal) {
    return send(question, usage);
  }
  std::string said = output_of(EnvironmentBlock(config::process_environment()), kOwnProgram,
                               {"ration", "set", question.target.word, "--limit", question.text}, true);
  said.erase(said.find_last_not_of('\n') + 1);  // npos + 1 is 0
  std::replace(said.begin(), said.end(), '\n', ';');
  return config::printable(said);
}

}  // namespace ration::cli
