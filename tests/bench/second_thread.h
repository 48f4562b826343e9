// A thread that sleeps for as long as the object exists. glibc and libstdc++ skip the atomic instructions of locks and
// reference counts in a process with one thread, but a program that uses CUDA always has more.
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
