// Processes for a test: forked, synchronised by barriers in shared memory, and waited for until a deadline, at which
// the test fails with a message.
// Threads: only the test's own; a process that forks here has no other threads unless the test says so.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "shapes/random.h"
#include "unit/events/scratch_folder.h"

namespace multiproc {

// Zeroed memory that a process shares with its later children.
void *shared_bytes(std::size_t bytes);
void give_back(void *memory, std::size_t bytes);

template <class T>
class Shared {
 public:
  static_assert(std::is_trivially_destructible_v<T>);
  Shared() : value_(new (shared_bytes(sizeof(T))) T{}) {}
  ~Shared() { give_back(value_, sizeof(T)); }
  Shared(const Shared &) = delete;
  Shared &operator=(const Shared &) = delete;
  T *operator->() const { return value_; }
  T &operator*() const { return *value_; }

 private:
  T *value_;
};

// A word that processes wait on.
using Gate = std::atomic<std::uint32_t>;
// Waits until `gate` is no longer `value`. After a minute, ends this process with a message.
void wait_while(Gate &gate, std::uint32_t value);
// Returns false if the gate did not change within `patience_ns`.
[[nodiscard]] bool wait_while(Gate &gate, std::uint32_t value, std::uint64_t patience_ns);
void wake(Gate &gate);
void open(Gate &gate, std::uint32_t value);

// All processes meet here, any number of times.
struct Barrier {
  Gate round;
  Gate arrived;
  std::uint32_t count = 0;
  void meet();
};

// Ends a child, with a message.
[[noreturn]] void fail(const std::string &what);
inline void expect(bool holds, const char *what) {
  if (!holds) {
    fail(what);
  }
}

// A child that runs `work` and ends with 0, however `work` returns. If it still runs, it is killed when its object or
// its parent ends.
class Child {
 public:
  explicit Child(const std::function<void()> &work);
  explicit Child(pid_t process) : process_(process) {}
  Child(Child &&other) noexcept : process_(std::exchange(other.process_, -1)) {}
  Child &operator=(Child &&other) noexcept {
    std::swap(process_, other.process_);
    return *this;
  }
  ~Child();

  pid_t process() const { return process_; }
  void send(int signal) const;
  // Returns 0, the child's exit code, or 128 + the signal that killed it.
  int ended();
  // Returns true if the child stopped, false if it ended, with `status` as above.
  bool stopped(int &status);
  void kill();

 private:
  pid_t process_;
};

// A folder in /dev/shm if that exists, like the groups of real programs.
struct Folder : ration::test::ScratchFolder {
  Folder();
};
std::vector<std::string> names_in(const std::string &folder);

// Counts of the quick run, or of the long run if MULTIPROC_LONG is set.
bool is_long();
template <class T>
T count_of(T quick, T full) {
  return is_long() ? full : quick;
}

// Returns MULTIPROC_SEED, or a random seed, and prints it.
std::uint64_t seed_of(const char *test);

class Random : public ration::shapes::Random {
 public:
  using ration::shapes::Random::Random;
  std::uint64_t below(std::uint64_t end) { return next() % end; }
};

std::uint64_t now_ns();

}  // namespace multiproc
