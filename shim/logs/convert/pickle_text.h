// Writes values in the format of Python's pickle, protocol 2. Layer: logs. Values.
// Uses only the operations that the reader in PyTorch's memory_viz page knows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ration::logs {

class PickleText {
 public:
  // Numbers the values of this text from `next` on; several texts of one pickle share this counter.
  explicit PickleText(std::uint32_t &next) : next_(next) {}

  void operator()(std::uint64_t number);
  void operator()(std::string_view text);
  // Writes a text that occurs often: in full the first time, and as a reference from then on.
  void word(const std::string &text);
  void truth(bool value) { text_ += value ? '\x88' : '\x89'; }

  // list() pushes an empty list on the stack; append() appends the value above it to the list.
  void list() { text_ += ']'; }
  void append() { text_ += 'a'; }
  // These two calls enclose the pairs of a dictionary.
  void begin_pairs() { text_ += "}("; }
  void end_pairs() { text_ += 'u'; }
  template <class Value>
  void pair(const char *key, const Value &value) {
    word(key);
    (*this)(value);
  }

  // Gives the value on top of the stack a number, by which recall() can write the value again.
  std::uint32_t remember();
  void recall(std::uint32_t number);

  std::string &text() { return text_; }

 private:
  void little_endian(std::uint64_t value, unsigned bytes);

  std::uint32_t &next_;
  std::unordered_map<std::string, std::uint32_t> words_;
  std::string text_;
};

}  // namespace ration::logs
