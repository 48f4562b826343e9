#include "base/thread_number.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/address_space.h"
#include "base/held.h"

namespace ration {
namespace {

// gettid() needs glibc 2.30.
int own_number() noexcept {
  return static_cast<int>(syscall(SYS_gettid));
}

}  // namespace

// A forked child inherits the state of the thread that forked, but has another number.
int thread_number() noexcept {
  RationThread *const state = held::thread();
  if (state == nullptr) {
    return own_number();
  }
  const std::uint64_t here = this_address_space();
  if (state->numbered_in != here) {
    state->number = own_number();
    state->numbered_in = here;
  }
  return state->number;
}

}  // namespace ration
