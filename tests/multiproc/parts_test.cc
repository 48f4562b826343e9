// The socket by which openers get descriptors: what arrives, whom it serves, and what becomes of it when a process
// forks or dies.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "exports.h"
#include "ledger/group_view.h"
#include "ledger/part_socket.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

constexpr std::uint64_t kExporter = 0x1234;
constexpr std::uint64_t kPatienceNs = 20'000'000'000;
constexpr std::uint64_t kSoonNs = 100'000'000;

// Answers every request with `sent` files of their numbers, from the one that is asked for.
struct Server {
  explicit Server(const Folder &shared, std::uint32_t count = kPartsAtOnce) : folder(shared), sent(count) {
    std::string problem;
    INFO(problem);
    REQUIRE(PartSocket::open(folder.path(), kExporter, problem));
    thread = std::thread([this] { serve(); });
  }
  ~Server() {
    over = true;
    PartSocket::shut();
    thread.join();
    PartSocket::remove(folder.path(), kExporter);
  }
  void serve() {
    PartRequest request;
    std::string problem;
    while (!over) {
      switch (PartSocket::receive(request)) {
        case PartSocket::Received::closed:
          if (!over && !PartSocket::open(folder.path(), kExporter, problem)) {
            return;
          }
          break;
        case PartSocket::Received::nothing:
          break;
        case PartSocket::Received::request:
          answer(request.first);
          PartSocket::hang_up();
          break;
      }
    }
  }
  void answer(std::uint64_t first) {
    PartReply reply;
    reply.state = PartsState::sent;
    std::vector<Descriptor> files;
    std::vector<int> numbers;
    for (; reply.count < sent; ++reply.count) {
      files.emplace_back(memfd_create("part", MFD_CLOEXEC));
      const std::uint64_t number = first + reply.count;
      if (!files.back() || write(files.back().number(), &number, sizeof(number)) != sizeof(number)) {
        reply = {};
        reply.state = PartsState::refused;
        break;
      }
      reply.bytes[reply.count] = number;
      numbers.push_back(files.back().number());
    }
    (void)PartSocket::answer(reply, numbers.data());
  }

  const Folder &folder;
  const std::uint32_t sent;
  std::atomic<bool> over{false};
  std::thread thread;
};

PartRequest request_from(std::uint64_t first) {
  PartRequest request;
  request.token.exporter = kExporter;
  request.first = first;
  return request;
}

Fetched fetch(const Folder &folder, Parts &parts, std::uint64_t first = 0, std::uint64_t patience_ns = kPatienceNs) {
  parts.clear();
  return fetch_parts(folder.path(), request_from(first), now_ns() + patience_ns, parts);
}

// Whether `count` files came, with the numbers from `first` on.
bool came(const Parts &parts, std::uint64_t first, std::uint32_t count) {
  bool right = parts.reply.count == count;
  for (std::uint32_t i = 0; right && i < count; ++i) {
    std::uint64_t number = 0;
    right = parts.files[i].number() > STDERR_FILENO && parts.reply.bytes[i] == first + i &&
            pread(parts.files[i].number(), &number, sizeof(number), 0) == sizeof(number) && number == first + i;
  }
  return right;
}

std::string socket_path(const Folder &folder) {
  return folder / part_socket_name(kExporter);
}

Descriptor connect_to(const Folder &folder) {
  Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path(folder).copy(address.sun_path, sizeof(address.sun_path) - 1);
  REQUIRE(connect(made.number(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0);
  return made;
}

void have_few_descriptors() {
  const rlimit few{256, 256};
  setrlimit(RLIMIT_NOFILE, &few);
}

// Every number that a descriptor could have, but for so many.
std::vector<Descriptor> take_all_descriptors(std::size_t but = 0) {
  std::vector<Descriptor> files;
  for (int file = open("/", O_PATH | O_CLOEXEC); file >= 0; file = open("/", O_PATH | O_CLOEXEC)) {
    files.emplace_back(file);
  }
  for (; but > 0; --but) {
    files.pop_back();
  }
  return files;
}

}  // namespace

TEST_CASE("an opener gets descriptors of the parts that it asks for") {
  const Folder folder;
  const Server server(folder);
  Parts parts;
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{32}, std::uint64_t{1000}}) {
    REQUIRE(fetch(folder, parts, first) == Fetched::parts);
    CHECK(came(parts, first, kPartsAtOnce));
  }
  struct stat found {};
  REQUIRE(stat(socket_path(folder).c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0600);
}

TEST_CASE("descriptors are sent to other processes, and are no standard streams") {
  const Folder folder;
  const Server server(folder);
  Child opener([&] {
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    Parts parts;
    expect(fetch(folder, parts) == Fetched::parts, "no parts");
    expect(came(parts, 0, kPartsAtOnce), "other parts");
  });
  CHECK(opener.ended() == 0);
}

TEST_CASE("a socket can be used whatever the umask takes from its mode") {
  const Folder folder;
  const mode_t before = umask(0777);
  {
    const Server server(folder);
    Parts parts;
    CHECK(fetch(folder, parts) == Fetched::parts);
  }
  umask(before);
}

TEST_CASE("an opener that sends nothing, or rubbish, holds no other up for long") {
  const Folder folder;
  const Server server(folder);
  std::vector<Descriptor> idle;
  for (int i = 0; i < 5; ++i) {
    idle.push_back(connect_to(folder));
  }
  const Descriptor rubbish = connect_to(folder);
  CHECK(send(rubbish.number(), "rubbish", 7, MSG_NOSIGNAL) == 7);
  Parts parts;
  CHECK(fetch(folder, parts) == Fetched::parts);
  char byte = 0;
  CHECK(recv(rubbish.number(), &byte, 1, 0) <= 0);
}

TEST_CASE("where nothing answers, an opener waits no longer than it says") {
  const Folder folder;
  Parts parts;
  const std::uint64_t start = now_ns();
  CHECK(fetch(folder, parts, 0, kSoonNs) == Fetched::no_answer);
  CHECK(now_ns() - start >= kSoonNs);
  std::string problem;
  REQUIRE(PartSocket::open(folder.path(), kExporter, problem));  // and nobody receives
  CHECK(fetch(folder, parts, 0, kSoonNs) == Fetched::no_answer);
  PartSocket::remove(folder.path(), kExporter);
}

TEST_CASE("a socket that the program has closed is made anew, and openers meanwhile are served") {
  const Folder folder;
  const Server server(folder);
  Parts parts;
  for (int i = 0; i < 3; ++i) {
    for (int file = STDERR_FILENO + 1; file < 4096; ++file) {
      struct stat found {};
      // A race by intent, which ThreadSanitizer need not see.
      if (syscall(SYS_newfstatat, file, "", &found, AT_EMPTY_PATH) == 0 && S_ISSOCK(found.st_mode)) {
        syscall(SYS_close, file);
      }
    }
    REQUIRE(fetch(folder, parts) == Fetched::parts);
    CHECK(came(parts, 0, kPartsAtOnce));
  }
}

TEST_CASE("a process without descriptors refuses at once") {
  const Folder folder;
  Parts parts;
  Shared<Gate> serves;
  Shared<Gate> over;
  Child exporter([&] {
    have_few_descriptors();
    const Server server(folder);
    const std::vector<Descriptor> all = take_all_descriptors();
    open(*serves, 1);
    wait_while(*over, 0);
  });
  wait_while(*serves, 0);
  CHECK(fetch(folder, parts) == Fetched::no_descriptors);
  open(*over, 1);
  CHECK(exporter.ended() == 0);

  const Server server(folder);
  Child opener([&] {
    have_few_descriptors();
    const std::vector<Descriptor> all = take_all_descriptors(10);  // but for the socket, and some of the parts
    Parts few;
    expect(fetch(folder, few) == Fetched::no_descriptors, "not refused");
    for (const Descriptor &file : few.files) {
      expect(!file || file.number() > STDERR_FILENO, "a stream");
    }
  });
  CHECK(opener.ended() == 0);
}

TEST_CASE("a forked child closes its parent's socket, and does not answer for it") {
  const Folder folder;
  Shared<Gate> forked;
  Shared<Gate> over;
  Child exporter([&] {
    const Server server(folder);
    Parts parts;
    expect(fetch(folder, parts) == Fetched::parts, "no parts");
    if (fork() == 0) {
      for (int file = STDERR_FILENO + 1; file < 4096; ++file) {
        struct stat found {};
        expect(fstat(file, &found) != 0 || !S_ISSOCK(found.st_mode), "an inherited socket");
      }
      open(*forked, 1);
      wait_while(*over, 0);
      _exit(0);
    }
    wait_while(*over, 0);
  });
  wait_while(*forked, 0);
  exporter.kill();
  Parts parts;
  CHECK(fetch(folder, parts, 0, kSoonNs) == Fetched::no_answer);
  open(*over, 1);
}

TEST_CASE("an opener whose exporter is killed under way hears that nothing answers") {
  const Folder folder;
  Shared<Gate> serves;
  Child exporter([&] {
    std::string problem;
    expect(PartSocket::open(folder.path(), kExporter, problem), "no socket");
    open(*serves, 1);
    PartRequest request;
    while (PartSocket::receive(request) != PartSocket::Received::request) {
    }
    raise(SIGKILL);
  });
  wait_while(*serves, 0);
  Parts parts;
  CHECK(fetch(folder, parts, 0, 2 * kSoonNs) == Fetched::no_answer);
  CHECK(exporter.ended() == 128 + SIGKILL);
}

TEST_CASE("the next look removes the sockets of dead exporters, and no others") {
  const Folder folder;
  Shared<Meeting> meeting;
  Child exporter([&] {
    std::string problem;
    const auto file = ExportFile::make(folder.path(), problem);
    expect(PartSocket::open(folder.path(), file->exporter(), problem), "no socket");
    meeting->token = file->publish(7, block_at(512), export_nonce());
    open(meeting->has_it, 1);
    wait_while(meeting->over, 0);
  });
  wait_while(meeting->has_it, 0);
  std::string problem;
  (void)read_groups(folder.path(), problem);
  const std::string name = part_socket_name(meeting->token.exporter);
  CHECK(names_in(folder.path()) == std::vector<std::string>{export_file_name(meeting->token.exporter), name});
  auto lease = open_one(folder, meeting->token);
  REQUIRE(lease != nullptr);
  exporter.kill();
  (void)read_groups(folder.path(), problem);
  CHECK(names_in(folder.path()) == std::vector<std::string>{export_file_name(meeting->token.exporter)});
  lease.reset();
  (void)read_groups(folder.path(), problem);
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("the names of sockets are told from others") {
  CHECK(is_part_socket(part_socket_name(kExporter)));
  CHECK(part_socket_name(kExporter) == export_file_name(kExporter) + ".sock");
  CHECK_FALSE(is_part_socket(export_file_name(kExporter)));
  CHECK_FALSE(is_export_file(part_socket_name(kExporter)));
  CHECK_FALSE(is_part_socket(".sock"));
  CHECK_FALSE(is_part_socket("ipc-123.sock"));
}
