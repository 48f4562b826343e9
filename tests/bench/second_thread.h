// A thread that sleeps while the object lives. glibc and libstdc++ skip the atomic instructions of locks and reference
// counts in a process of one thread, and a program that uses CUDA always has more than one.
#pragma once

#include <future>
#include <thread>

namespace ration::bench {

class SecondThread {
 public:
  SecondThread() : thread_([end = end_.get_future()] { end.wait(); }) {}
  SecondThread(const SecondThread &) = delete;
  SecondThread &operator=(const SecondThread &) = delete;
  ~SecondThread() {
    end_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> end_;
  std::thread thread_;
};

}  // namespace ration::bench
