#include "cli/doctor/servers.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "cli/doctor/checkup.h"
#include "cli/doctor/launchers.h"

namespace ration::cli::doctor {

namespace {

using Words = std::vector<std::string>;

// Letters of options that take a value: tmux's own, and those of its commands below.
constexpr Launcher kTmux = {"tmux", Passing::kTmux, "cfLST", ""};
constexpr Launcher kTmuxCommand = {"", Passing::kTmux, "cefFlnpstxy", ""};

// tmux takes any beginning of a name that is not another one's.
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

bool is_without_library(const ProcessFacts &server) {
  const Words entries = entries_of_preload(server.variable("LD_PRELOAD"));
  return server.mapped("libration.so") == nullptr && std::none_of(entries.begin(), entries.end(), is_our_library);
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

}  // namespace

TmuxCall read_tmux(const Words &words, const EnvironmentBlock &environment) {
  TmuxCall call;
  call.socket = socket_of_tmux(words, environment);
  Words rest(words.begin() + static_cast<std::ptrdiff_t>(end_of_options(kTmux, words)), words.end());
  if (rest.empty()) {
    return call;
  }
  rest.erase(std::find(rest.begin(), rest.end(), ";"), rest.end());  // other commands of tmux
  call.types = !rest.empty() && is_among(std::begin(kTyping), std::end(kTyping), rest.front());
  call.starts = call.types || (!rest.empty() && is_starting(rest.front()));
  if (!call.starts) {
    return call;
  }
  const std::size_t end = end_of_options(kTmuxCommand, rest);
  for (std::size_t at = 1; at + 1 < end; ++at) {
    if (rest[at] == "-e") {
      call.environment.push_back(rest[at + 1]);
    }
  }
  call.command.assign(rest.begin() + static_cast<std::ptrdiff_t>(end), rest.end());
  return call;
}

bool is_plain_server(const std::string &socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path)) {
    return false;
  }
  std::memcpy(address.sun_path, socket.data(), socket.size());
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) {
    return false;
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  // A socket that no server listens at stays behind in its folder.
  const bool runs = connect(file, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0 &&
                    getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  close(file);
  return runs && is_without_library(read_process(peer.pid));
}

bool is_in_plain_screen(const EnvironmentBlock &environment) {
  const std::string session = environment.value("STY");  // PID.NAME
  int pid = 0;
  const auto [end, error] = std::from_chars(session.data(), session.data() + session.size(), pid);
  if (error != std::errc() || pid < 1) {
    return false;
  }
  const ProcessFacts server = read_process(pid);
  return server.is_there && is_without_library(server);
}

}  // namespace ration::cli::doctor
