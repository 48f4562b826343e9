#include "ledger/process_identity.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "ledger/process_end.h"

namespace ration::ledger {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  const bool random = getrandom(&number, sizeof(number), GRND_NONBLOCK) == sizeof(number);
  return random ? number : now_ns() ^ static_cast<std::uint64_t>(getpid()) << 40;
}

ProcessIdentity this_process() {
  ProcessIdentity process;
  process.identity = random_number();
  process.pid = getpid();
  process.uid = geteuid();
  process.pid_namespace = this_pid_namespace();
  process.start_unix_ns = unix_ns();
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program));
  process.program = length > 0 ? std::string(program, static_cast<std::size_t>(length)) : program_invocation_name;
  return process;
}

}  // namespace ration::ledger
