#include "ledger/part_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/open_beyond_streams.h"
#include "base/wait.h"
#include "ledger/export_file.h"
#include "ledger/kept_descriptor.h"
#include "ledger/life_byte.h"

namespace ration::ledger {
namespace {

constexpr char kSuffix[] = ".sock";
constexpr std::size_t kSuffixLength = sizeof(kSuffix) - 1;
constexpr int kWaiting = 128;            // connections that may wait
constexpr int kLookMs = 2000;            // after which receive() returns that nothing came
constexpr int kRequestMs = 100;          // enough, because an opener sends its request at once
constexpr int kWithoutDescriptors = 10;  // ms to wait before the next try

constinit KeptDescriptor listening;
constinit KeptDescriptor connection;
// Also refers to the socket of `listening`. It is closed to free its number for a connection if the process has no
// other left.
constinit KeptDescriptor spare;

void end_in_child() {
  connection.end();
  spare.end();
  listening.end();
}

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

// Names the folder by its descriptor, because its path may be longer than an address can hold.
Address address_in(int folder, const std::string &name) {
  const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + name;
  Address address;
  address.name.sun_family = AF_UNIX;
  path.copy(address.name.sun_path, sizeof(address.name.sun_path) - 1);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

const sockaddr *of(const Address &address) {
  return reinterpret_cast<const sockaddr *>(&address.name);
}

Descriptor make_socket() {
  const HeldStreams held;
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// True: something has come, or nothing ever will.
bool wait_for_input(int file, int timeout_ms) {
  pollfd waited{file, POLLIN, 0};
  return poll(&waited, 1, timeout_ms) != 0;
}

Descriptor accept_one() {
  const HeldStreams held;
  Descriptor accepted(accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!accepted && (errno == EMFILE || errno == ENFILE)) {
    spare.end();
    accepted = Descriptor(accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }
  return accepted;
}

bool is_trusted(int file) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

void refill_spare() {
  if (!spare.is_there() && listening.is_there()) {
    spare.end();
    (void)spare.keep(Descriptor(fcntl(listening.number(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1)));
  }
}

struct alignas(cmsghdr) Control {
  unsigned char bytes[CMSG_SPACE(sizeof(int) * kPartsAtOnce)] = {};
};

// Receives the reply and the descriptors with it. `cut`: some descriptors are missing. False: it is not a valid reply.
bool receive_reply(int file, Parts &parts, bool &cut) {
  Control control;
  iovec content{&parts.reply, sizeof(parts.reply)};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  ssize_t received = 0;
  parts.exclusion.emplace();
  {
    const HeldStreams held;
    received = recvmsg(file, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  }
  std::uint32_t count = 0;
  for (const cmsghdr *header = received < 0 ? nullptr : CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, const_cast<cmsghdr *>(header))) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    for (std::size_t at = 0; at + CMSG_LEN(sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header) + at, sizeof(number));
      Descriptor one(number);
      if (count < kPartsAtOnce) {
        parts.files[count++] = std::move(one);
      }
    }
  }
  const PartReply &reply = parts.reply;
  const bool whole = received == static_cast<ssize_t>(sizeof(reply)) && reply.magic == PartReply::kMagic;
  cut = whole && reply.state == PartsState::sent && count < reply.count;
  return whole && (cut || count == reply.count);
}

}  // namespace

std::string part_socket_name(std::uint64_t exporter) {
  return export_file_name(exporter) + kSuffix;
}

bool is_part_socket(const std::string &name) {
  return name.size() > kSuffixLength && name.compare(name.size() - kSuffixLength, kSuffixLength, kSuffix) == 0 &&
         is_export_file(name.substr(0, name.size() - kSuffixLength));
}

void remove_socket_of_dead(int folder, const std::string &name) {
  std::string problem;
  const Descriptor file = open_group_file(folder, name.substr(0, name.size() - kSuffixLength), problem);
  if (file ? is_dead(file.number(), shared::kExporterLife) : problem.empty()) {
    unlinkat(folder, name.c_str(), 0);
  }
}

bool PartSocket::open(const std::string &state_folder, std::uint64_t exporter, std::string &problem) {
  problem.clear();
  if (!call_in_forked_child(end_in_child)) {
    problem = "a forked child would inherit the socket";
    return false;
  }
  const ForkExclusion exclusion;
  const Descriptor folder = open_state_folder(state_folder, false, problem);
  if (!folder) {
    problem = state_folder + ": " + (problem.empty() ? error_text(ENOENT) : problem);
    return false;
  }
  const std::string name = part_socket_name(exporter);
  const Address address = address_in(folder.number(), name);
  Descriptor made = make_socket();
  bool done = static_cast<bool>(made);
  if (done) {
    unlinkat(folder.number(), name.c_str(), 0);  // left over if the program has closed an earlier socket
    fchmod(made.number(), 0600);                 // before the socket has a name
    done = bind(made.number(), of(address), address.bytes) == 0 &&
           fchmodat(folder.number(), name.c_str(), 0600, 0) == 0 &&  // whatever the umask is
           listen(made.number(), kWaiting) == 0;
  }
  if (!done) {
    problem = state_folder + "/" + name + ": " + error_text(errno);
    return false;
  }
  spare.end();
  listening.end();
  if (!listening.keep(std::move(made))) {
    problem = error_text(errno);
    return false;
  }
  refill_spare();
  return true;
}

void PartSocket::shut() {
  if (listening.is_there()) {
    shutdown(listening.number(), SHUT_RDWR);
  }
}

void PartSocket::remove(const std::string &state_folder, std::uint64_t exporter) {
  spare.end();
  listening.end();
  std::string problem;
  if (const Descriptor folder = open_state_folder(state_folder, false, problem)) {
    unlinkat(folder.number(), part_socket_name(exporter).c_str(), 0);
  }
}

// After each wait, the program may have closed the socket, and the number may be another file's.
PartSocket::Received PartSocket::receive(PartRequest &request) {
  if (!listening.is_there()) {
    return Received::closed;
  }
  refill_spare();
  pollfd waited{listening.number(), POLLIN, 0};
  const int ready = poll(&waited, 1, kLookMs);
  if (!listening.is_there() || (waited.revents & POLLHUP) != 0) {  // closed by the program, or shut
    return Received::closed;
  }
  if (ready <= 0) {
    return Received::nothing;
  }
  Descriptor accepted = accept_one();
  if (!accepted) {
    poll(nullptr, 0, errno == EMFILE || errno == ENFILE ? kWithoutDescriptors : 0);
    return Received::nothing;
  }
  if (!is_trusted(accepted.number()) || !connection.keep(std::move(accepted))) {
    return Received::nothing;
  }
  const bool came = wait_for_input(connection.number(), kRequestMs) && connection.is_there() &&
                    recv(connection.number(), &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC) ==
                        static_cast<ssize_t>(sizeof(request));
  if (came && request.magic == PartRequest::kMagic) {
    return Received::request;
  }
  hang_up();
  return Received::nothing;
}

bool PartSocket::answer(const PartReply &reply, const int *files) {
  if (!connection.is_there()) {
    return true;  // nobody can receive it
  }
  Control control;
  PartReply content = reply;
  iovec contents{&content, sizeof(content)};
  msghdr message{};
  message.msg_iov = &contents;
  message.msg_iovlen = 1;
  if (reply.count != 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * reply.count);
    cmsghdr *const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * reply.count);
    std::memcpy(CMSG_DATA(header), files, sizeof(int) * reply.count);
  }
  return sendmsg(connection.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EPIPE ||
         errno == ECONNRESET;
}

void PartSocket::hang_up() {
  connection.end();
}

// Retries, because the exporter may just be making its socket anew.
Fetched fetch_parts(const std::string &state_folder, const PartRequest &request, std::uint64_t deadline_ns,
                    Parts &parts) {
  std::string problem;
  const Descriptor folder = open_state_folder(state_folder, false, problem);
  if (!folder) {
    return Fetched::no_answer;
  }
  const Address address = address_in(folder.number(), part_socket_name(request.token.exporter));
  for (Backoff backoff; now_ns() < deadline_ns; backoff.sleep()) {
    const Descriptor asked = make_socket();
    if (!asked) {
      return Fetched::no_descriptors;
    }
    if (connect(asked.number(), of(address), address.bytes) != 0 ||
        send(asked.number(), &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      continue;
    }
    const std::uint64_t now = now_ns();
    const std::uint64_t left_ms = deadline_ns <= now ? 0 : (deadline_ns - now) / 1'000'000 + 1;
    bool cut = false;
    if (!wait_for_input(asked.number(), static_cast<int>(std::min<std::uint64_t>(left_ms, 60'000))) ||
        !receive_reply(asked.number(), parts, cut)) {
      parts.clear();
      continue;
    }
    if (cut || parts.reply.state == PartsState::refused) {
      return Fetched::no_descriptors;
    }
    return parts.reply.state == PartsState::sent ? Fetched::parts : Fetched::no_block;
  }
  return Fetched::no_answer;
}

}  // namespace ration::ledger
