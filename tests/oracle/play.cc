// play PATIENCE_MS: plays the programs of standard input, each in a process of its own, and prints for each a line: its
// name and what each step answered, or `t0:` and what went wrong where the threads ran side by side; then `end`, the
// blocks whose bytes are another's, and the most bytes that each device held. PATIENCE_MS is how long a call may wait;
// 0: natively, as long as nothing else happens.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "simcuda/simcuda.h"
#include "tests/oracle/flags.h"
#include "tests/oracle/operations.h"
#include "tests/oracle/program.h"
#include "tests/oracle/stamp.h"
#include "tests/oracle/stillness.h"
#include "tests/oracle/watch.h"

namespace oracle {
namespace {

constexpr size_t kReportBytes = 1 << 20;
constexpr unsigned kLongestSeconds = 60;
constexpr int kMostThreads = 10;

char *report = nullptr;  // shared with the child, which may die at any step

void say(const std::string &text) {
  static size_t used = 0;
  if (used + text.size() + 1 >= kReportBytes) return;
  std::memcpy(report + used, text.c_str(), text.size() + 1);
  used += text.size();
}

[[noreturn]] void hung() {
  say(" hangs");
  ::_exit(0);
}

const Operations &operations() {
  static const Operations all = [] {
    Operations each;
    for (auto *add :
         {add_contexts, add_allocations, add_ordered, add_physical, add_frees, add_queries, add_work, add_failing})
      add(each);
    return each;
  }();
  return all;
}

std::string run_step(const Step &step) {
  const auto found = operations().find(step.verb);
  return found == operations().end() ? kSkipped : found->second(step.words);
}

// A thread of the program, which runs one step at a time for the main thread.
class Hand {
 public:
  Hand() : thread_([this] { serve(); }) { thread_.detach(); }

  void run(const std::function<void()> &job) {
    std::unique_lock guard(mutex_);
    job_ = &job;
    changed_.notify_all();
    changed_.wait(guard, [this] { return job_ == nullptr; });
  }

 private:
  void serve() {
    std::unique_lock guard(mutex_);
    while (true) {
      changed_.wait(guard, [this] { return job_ != nullptr; });
      const auto *job = job_;
      guard.unlock();
      (*job)();
      guard.lock();
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()> *job_ = nullptr;
  std::thread thread_;
};

// The most that each device has held for the program, contexts aside.
unsigned long long held[2] = {};

void look_at_devices() {
  for (int device = 0; device < 2; ++device) {
    simcuda_books books = {};
    if (simcuda_device_books(device, &books) != 0) continue;
    held[device] =
        std::max(held[device], books.allocation_bytes + books.array_bytes + books.pool_bytes + books.physical_bytes);
  }
}

// After these, device work may go on until it waits or is done.
bool moves_work(const Step &step) {
  static const std::set<std::string> verbs = {"kernel",  "host_function", "fill",        "copy",       "fetch",
                                              "set",     "unlock",        "alloc_async", "alloc_from", "free_async",
                                              "destroy", "reset",         "release"};
  return verbs.contains(step.verb);
}

void take_turns(const Program &program) {
  Hand *hands[kMostThreads] = {};
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step &step = program.steps[i];
    std::string answer;
    const std::function<void()> job = [&] { answer = run_step(step); };
    watch().enter(program.waited[i], program.late);
    if (step.thread == 0) {
      job();
    } else {
      Hand *&hand = hands[step.thread];
      if (hand == nullptr) hand = new Hand;
      hand->run(job);
    }
    answer += watch().leave();
    if (moves_work(step)) wait_until_still();
    look_at_devices();
    say(" " + answer);
  }
}

// Steps of the first round only.
bool makes_its_place(const Step &step) {
  return step.verb == "retain" || step.verb == "create" || step.verb == "use" || step.verb == "stream";
}

void run_together(const Program &program) {
  objects().numbers_return = true;
  std::set<std::string> wrong[kMostThreads];
  std::vector<std::thread> threads;
  for (int number = 0; number < kMostThreads; ++number) {
    std::vector<const Step *> own;
    for (const Step &step : program.steps) {
      if (step.thread == number) own.push_back(&step);
    }
    if (own.empty()) continue;
    threads.emplace_back([own, number, &wrong, &program] {
      for (int round = 0; round < program.rounds; ++round) {
        for (const Step *step : own) {
          if (round > 0 && makes_its_place(*step)) continue;
          const std::string answer = run_step(*step);
          if ((answer[0] != '0' && answer != kSkipped) || answer.back() == '!')
            wrong[number].insert(step->verb + "=" + answer);
        }
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (int number = 0; number < kMostThreads; ++number) {
    for (const std::string &what : wrong[number]) say(" t" + std::to_string(number) + ":" + what);
  }
}

// With all work done.
void check_blocks() {
  flags().release();
  for (int i = 0; i < kMost; ++i) {
    const Context &context = objects().contexts[i];
    if (context.life != Life::kLive || cuCtxSetCurrent(context.handle) != CUDA_SUCCESS) continue;
    const bool done = cuCtxSynchronize() == CUDA_SUCCESS;
    for (Block &block : objects().blocks) {
      if (done && block.home == i) block.readable = true;
    }
  }
  say(" end");
  for (int i = 0; i < kMost; ++i) {
    if (objects().blocks[i].life == Life::kLive && !intact(objects().blocks[i])) say(" b" + std::to_string(i) + "!");
  }
}

void play(const Program &program, int patience_ms) {
  ::alarm(kLongestSeconds);
  for (const auto &[name, value] : program.environment) ::setenv(name.c_str(), value.c_str(), 1);
  register_kernel();
  if (const CUresult code = cuInit(0); code != CUDA_SUCCESS) return say(" init=" + code_text(code));
  if (program.rounds > 0) {
    run_together(program);
  } else {
    watch().start(patience_ms, hung);
    take_turns(program);
  }
  look_at_devices();
  check_blocks();
  for (const auto bytes : held) say(" " + std::to_string(bytes));
}

std::string play_in_child(const Program &program, int patience_ms) {
  report[0] = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    play(program, patience_ms);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::string answers = program.name + report;
  if (WIFSIGNALED(status))
    answers += WTERMSIG(status) == SIGALRM ? " hangs" : " died=" + std::to_string(WTERMSIG(status));
  return answers;
}

}  // namespace
}  // namespace oracle

int main(int argc, char **argv) {
  using namespace oracle;
  const int patience_ms = argc > 1 ? std::atoi(argv[1]) : 0;
  void *shared = ::mmap(nullptr, kReportBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  report = static_cast<char *>(shared);
  for (Program program; read_program(std::cin, program);) std::cout << play_in_child(program, patience_ms) << std::endl;
}
