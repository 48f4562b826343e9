// A second process of the same program, newly started with arguments, and a socket that connects the two processes. (A
// driver does not survive a fork, so a child that uses one must be newly started.)
// Layer: question.h. Owns: the process, killed and reaped at the latest by the destructor; the socket.
#pragma once
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "tests/gpu/questions/question.h"

namespace question {

constexpr int kParent = 3;  // the child's end of the socket

// A message from one process to the other: a piece of text, and perhaps an open file.
struct Message {
  std::string text;
  int file = -1;
};

inline void send(int socket, const std::string &text, int file = -1) {
  char control[CMSG_SPACE(sizeof file)] = {};
  std::string bytes = text;
  iovec part = {bytes.data(), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

// The next message; empty if the other end is gone or has been silent for too long.
inline Message receive(int socket, int timeout_ms = 30'000) {
  char bytes[4096] = {}, control[CMSG_SPACE(sizeof(int))] = {};
  iovec part = {bytes, sizeof bytes};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  pollfd waiting = {socket, POLLIN, 0};
  if (poll(&waiting, 1, timeout_ms) != 1) return {};
  const ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (length <= 0) return {};
  Message received = {std::string(bytes, static_cast<std::size_t>(length)), -1};
  if (const cmsghdr *header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&received.file, CMSG_DATA(header), sizeof received.file);
  }
  return received;
}

class Child {
 public:
  explicit Child(const std::vector<std::string> &arguments) {
    int sockets[2] = {};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) skip("no socket pair");
    socket_ = sockets[0];
    std::vector<char *> words;
    std::string program = "/proc/self/exe";
    words.push_back(program.data());
    std::vector<std::string> copies = arguments;
    for (std::string &word : copies) words.push_back(word.data());
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, sockets[1], kParent);
    const int failed = posix_spawn(&pid_, program.c_str(), &actions, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(sockets[1]);
    if (failed != 0) skip("cannot start a second process");
  }
  ~Child() {
    end();
    close(socket_);
  }
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  int socket() const { return socket_; }

  void kill() const { ::kill(pid_, SIGKILL); }

  // Kills the child if it still runs. Returns the signal that ended it, or 0 if it ended by itself.
  int end(bool by_force = true) {
    if (pid_ < 0) return 0;
    int status = 0;
    if (by_force) kill();
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
};

// Runs the child's part for main(), with a driver that is ready. A Stop ends the part.
template <class Part>
int run_child(Part &&part) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(90);
  try {
    make_ready();
    part();
    return 0;
  } catch (const Stop &stop) {
    send(kParent, "stopped: " + stop.reason);
    return 1;
  }
}

}  // namespace question
