// A thread whose current context another thread has destroyed, so that every call in this thread finds a dead context.
// Layer: question.h. Owns: the thread.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/gpu/questions/question.h"

namespace question {

class Orphan {
 public:
  Orphan() {
    thread_ = std::thread([this] { work(); });
    await([this] { return made_; });
    std::thread([this] { cuCtxDestroy(context_); }).join();
  }
  ~Orphan() {
    run(nullptr);
    thread_.join();
  }
  Orphan(const Orphan &) = delete;
  Orphan &operator=(const Orphan &) = delete;

  // Runs the function in that thread and waits for it; null ends the thread.
  void run(const std::function<void()> &act) {
    {
      const std::lock_guard lock(mutex_);
      act_ = act;
      waiting_ = true;
    }
    changed_.notify_all();
    await([this] { return !waiting_; });
  }

 private:
  void work() {
    cuCtxCreate(&context_, nullptr, 0, 0);
    std::unique_lock lock(mutex_);
    made_ = true;
    for (bool more = true; more;) {
      changed_.notify_all();
      changed_.wait(lock, [this] { return waiting_; });
      more = act_ != nullptr;
      if (more) act_();
      waiting_ = false;
    }
    changed_.notify_all();
  }
  template <class Ready>
  void await(Ready &&ready) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, ready);
  }

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> act_;
  CUcontext context_ = nullptr;
  bool made_ = false, waiting_ = false;
};

}  // namespace question
