// Writes a program step by step, and remembers enough about it for most steps to make sense. Layer: none. Threads: one.
#pragma once

#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace oracle {

class Maker {
 public:
  struct Block {
    int number;
    std::uint64_t bytes;
    std::uint64_t cost;
    int device;
    int context;  // with which the block ends; -1: none
    char kind;    // p: plain or managed, o: ordered, m: mapped
    bool live;
  };
  struct Context {
    int number;
    int device;
    bool primary;
    bool live;
  };
  struct Stream {
    int number;
    int context;
    bool live;
  };

  Maker(std::uint64_t seed, std::uint64_t number);

  // Random numbers.
  unsigned below(unsigned end);
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T>
  const T &one_of(const std::vector<T> &all) {
    return all[below(static_cast<unsigned>(all.size()))];
  }

  // line() adds a line; step() adds one for the thread whose turn it is.
  void line(const std::string &text) { text_ << text << '\n'; }
  void step(const std::string &text);
  // Selects the thread whose steps come next. The thread has a context.
  void turn(int thread);
  int thread() const { return thread_; }

  // The device of the current context; -1: none.
  int device() const;
  int context() const { return current_[static_cast<size_t>(thread_)]; }
  std::uint64_t limit() const { return limit_; }
  std::uint64_t room() const;
  // A size that is likely to reveal a defect. If `fits`, it is at most what is left of the limit.
  std::uint64_t size(bool fits);

  void use(int context);
  int make_context(int device, bool primary);
  void end_context(int number);
  int make_stream();
  // A stream of the current context, by name.
  std::string some_stream();
  // Allocates a block through any API, or through the named API; returns the block's number.
  int allocate(std::uint64_t bytes, const std::string &api = "alloc");
  void free(int number, const std::string &how = "free");
  // Queues work that waits for a flag; returns the flag's number.
  int gate(const std::string &stream);
  void set_some_flag();

  std::vector<int> live_blocks() const;
  std::vector<Block> blocks;
  std::vector<Context> contexts;
  std::vector<Stream> streams;
  int devices = 1;
  int threads = 1;
  int next_array = 0;
  int next_pool = 0;
  int next_flag = 0;

  std::string text() const { return text_.str(); }

 private:
  std::mt19937_64 random_;
  std::ostringstream text_;
  std::uint64_t limit_ = 0;
  std::vector<std::uint64_t> used_;
  std::vector<int> current_;
  std::vector<int> closed_;  // flags that no step has set yet
  int thread_ = 0;
};

// Adds the steps of a program. scenes.cc contains patterns of use, and mixture.cc contains single steps of every kind.
void add_scenes(Maker &maker);
void add_mixture(Maker &maker, int steps);
void make_together(Maker &maker);
// Adds failing calls instead of scenes (failures.cc).
void make_failing(Maker &maker);

}  // namespace oracle
