#include "cli/launch/servers.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "cli/launch/launchers.h"
#include "cli/launch/preload_order.h"

namespace ration::cli {

namespace {

using Words = std::vector<std::string>;

// The letters of options that take a value: of tmux itself, and of its commands below.
constexpr Launcher kTmux = {"tmux", Passing::kTmux, "cfLST", ""};
constexpr Launcher kTmuxCommand = {"", Passing::kTmux, "cefFlnpstxy", ""};

// tmux accepts any unambiguous beginning of a command's name.
constexpr std::string_view kStarting[] = {"new-session", "new-window", "split-window", "respawn-pane",
                                          "respawn-window"};
constexpr std::string_view kAliases[] = {"new", "neww", "splitw", "respawnp", "respawnw"};
constexpr std::string_view kTyping[] = {"send-keys", "send",      "run-shell", "run",   "if-shell",
                                        "if",        "pipe-pane", "pipep",     "popup", "display-popup"};

bool is_among(const std::string_view *begin, const std::string_view *end, std::string_view word) {
  return std::find(begin, end, word) != end;
}

bool is_starting(std::string_view word) {
  constexpr std::size_t kShortest = 5;  // "new-s", "new-w"
  return is_among(std::begin(kAliases), std::end(kAliases), word) ||
         (word.size() >= kShortest && std::any_of(std::begin(kStarting), std::end(kStarting),
                                                  [&](std::string_view each) { return each.starts_with(word); }));
}

std::string socket_of_tmux(const Words &words, const EnvironmentBlock &environment) {
  const Words own(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(end_of_options(kTmux, words)));
  if (const auto path = option_value(kTmux, own, "-S", "--none")) {
    return *path;
  }
  const auto name = option_value(kTmux, own, "-L", "--none");
  if (const std::string inside = environment.value("TMUX"); !inside.empty() && !name) {
    return inside.substr(0, inside.find(','));
  }
  const std::string folder = environment.value("TMUX_TMPDIR");
  return (folder.empty() ? "/tmp" : folder) + "/tmux-" + std::to_string(getuid()) + "/" + name.value_or("default");
}

// The words of each of tmux's commands, which are separated by a semicolon that is a word or ends one.
std::vector<Words> commands_of_tmux(const Words &words) {
  std::vector<Words> commands(1);
  for (std::size_t at = end_of_options(kTmux, words); at < words.size(); ++at) {
    std::string word = words[at];
    const bool ends = word.ends_with(';') && !word.ends_with("\\;");
    word.resize(word.size() - (ends ? 1 : 0));
    if (!word.empty() || !ends) {
      commands.back().push_back(std::move(word));
    }
    if (ends) {
      commands.emplace_back();
    }
  }
  std::erase_if(commands, [](const Words &each) { return each.empty(); });
  return commands;
}

// `words`: one of tmux's commands.
void read_command(const Words &words, TmuxCall &call) {
  call.types = is_among(std::begin(kTyping), std::end(kTyping), words.front());
  call.starts = call.types || is_starting(words.front());
  if (call.starts) {
    call.environment = option_values(kTmuxCommand, words, "-e", "--none");
    const std::size_t end = end_of_options(kTmuxCommand, words);
    call.command.assign(words.begin() + static_cast<std::ptrdiff_t>(end), words.end());
  }
}

}  // namespace

// Of several commands, the first that names a program counts.
TmuxCall read_tmux(const Words &words, const EnvironmentBlock &environment) {
  TmuxCall first;
  first.socket = socket_of_tmux(words, environment);
  const std::vector<Words> commands = commands_of_tmux(words);
  first.starts = commands.empty();
  for (const Words &command : commands) {
    TmuxCall call = first;
    read_command(command, call);
    if (call.starts && !call.command.empty()) {
      return call;
    }
    first = call.starts && !first.starts ? call : first;
  }
  return first;
}

bool is_without_library(const ProcessFacts &server) {
  const Words entries = entries_of_preload(server.variable("LD_PRELOAD"));
  return server.mapped("libration.so") == nullptr && std::none_of(entries.begin(), entries.end(), is_our_library);
}

std::optional<ProcessFacts> server_at(const std::string &socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path)) {
    return std::nullopt;
  }
  std::memcpy(address.sun_path, socket.data(), socket.size());
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) {
    return std::nullopt;
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  // connect() finds out, because the socket of a server that has ended stays in its folder.
  const bool runs = connect(file, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0 &&
                    getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  close(file);
  return runs ? std::optional(read_process(peer.pid)) : std::nullopt;
}

std::optional<ProcessFacts> server_of_screen(const EnvironmentBlock &environment) {
  const std::string session = environment.value("STY");  // PID.NAME
  int pid = 0;
  const auto [end, error] = std::from_chars(session.data(), session.data() + session.size(), pid);
  if (error != std::errc() || pid < 1) {
    return std::nullopt;
  }
  ProcessFacts server = read_process(pid);
  return server.is_there ? std::optional(std::move(server)) : std::nullopt;
}

}  // namespace ration::cli
