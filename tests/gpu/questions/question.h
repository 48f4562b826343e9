// Shared by the programs that each ask a real driver one question: reports, timing, and work that keeps a device busy.
// A program prints a line of JSON for each test: {"name", "status": "ok" | "failed" | "skipped", "figures", "note"}.
// Layer: none, needs only libcuda.so.1. Threads: a test runs on the main thread.
#pragma once
#include <cuda.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace question {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

// Ends a test early, as skipped if the driver lacks what the question is about, otherwise as failed.
struct Stop {
  bool skipped;
  std::string reason;
};

// Throws Stop unless the call succeeded; skips the test if the driver says that it does not support the call.
void must(CUresult code, const char *file = __builtin_FILE(), int line = __builtin_LINE());

[[noreturn]] void skip(const std::string &reason);

// The figures and the note of one test.
class Test {
 public:
  explicit Test(std::string name) : name_(std::move(name)) {}

  // A whole number or a fraction. Times, means and medians are printed with a decimal point, even if they are whole
  // numbers.
  template <class Value>
  void number(const std::string &key, Value value) {
    if constexpr (std::is_floating_point_v<Value>) {
      fraction(key, value);
    } else {
      whole(key, static_cast<long long>(value));
    }
  }
  void text(const std::string &key, const std::string &value);
  void yes(const std::string &key, bool value);
  void code(const std::string &key, CUresult value) { number(key, value); }
  void note(std::string sentence) { note_ = std::move(sentence); }
  void fail(std::string reason);

  const std::string &name() const { return name_; }
  bool failed() const { return status_ == "failed"; }
  void stop(const Stop &stop);
  void print() const;

 private:
  void fraction(const std::string &key, double value);
  void whole(const std::string &key, long long value);

  std::string name_, status_ = "ok", note_;
  std::vector<std::pair<std::string, std::string>> figures_;  // key, JSON text
};

struct Case {
  const char *name;
  void (*body)(Test &);
};

// True if run() initialises the driver and makes device 0's primary context current before the first test. A program
// that forks leaves this to its children, because a driver does not survive a fork.
enum class Driver { kReady, kUntouched };

// Runs the tests in order. Returns the exit status: 1 if a test failed. The process is killed after 90 seconds.
int run(std::initializer_list<Case> cases, Driver driver = Driver::kReady);

// Does the same set-up in a child process.
void make_ready();

// A driver export that not every cuda.h declares. Skips the test if the driver lacks it too.
void *export_of(const char *symbol);

// True if the driver is simulated: then its times mean nothing, and it has no code for NVIDIA's libraries.
bool simulated();

// "4KiB", "2MiB", "1GiB".
std::string size_name(std::size_t bytes);

std::size_t free_bytes();

template <class Call>
double microseconds(Call &&call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values);

// The median duration of `count` calls.
template <class Call>
double median_us(int count, Call &&call) {
  std::vector<double> each;
  for (int i = 0; i < count; ++i) each.push_back(microseconds(call));
  return median(std::move(each));
}

// The mean duration of a call that is too short to be timed alone.
template <class Call>
double mean_ns(int count, Call &&call) {
  call();
  return microseconds([&] {
           for (int i = 0; i < count; ++i) call();
         }) *
         1000 / count;
}

// Functions that are called at the end of a scope, in reverse order.
class Cleanup {
 public:
  Cleanup() = default;
  ~Cleanup();
  Cleanup(const Cleanup &) = delete;
  Cleanup &operator=(const Cleanup &) = delete;
  void add(std::function<void()> act) { acts_.push_back(std::move(act)); }

 private:
  std::vector<std::function<void()>> acts_;
};

// The kernels of kernels.h, loaded into the current context. On the simulated driver they are host functions.
struct Kernels {
  CUfunction spin, fill, copy;
};
Kernels load_kernels();

// Writes value, value + 1, … over `words` 32-bit words.
CUresult fill(const Kernels &kernels, CUdeviceptr to, std::size_t words, unsigned value, CUstream stream);
CUresult copy(const Kernels &kernels, CUdeviceptr to, CUdeviceptr from, std::size_t words, CUstream stream);

// A kernel that runs in a stream of the current context until stopped, for at most `limit_ms` (never more than 2,000).
// It has begun when the constructor returns. It touches no device memory.
class Spin {
 public:
  Spin(const Kernels &kernels, CUstream stream, unsigned limit_ms);
  ~Spin();  // stops the kernel and waits for its end
  Spin(const Spin &) = delete;
  Spin &operator=(const Spin &) = delete;

  void stop();
  bool running() const;  // makes no driver call

 private:
  CUcontext context_ = nullptr;
  volatile unsigned *words_ = nullptr;  // in pinned memory; [0]: has begun (1) or ended (2); [1]: set to stop it
};

}  // namespace question
