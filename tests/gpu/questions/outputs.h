// The effect of a call on its outputs, each of which is left `untouched`, `zeroed` or `changed`. Layer: question.h.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/gpu/questions/question.h"

namespace question {

// The outputs of one call. Every output is filled with a pattern before the call.
class Outputs {
 public:
  template <class Value>
  Value *add(const std::string &name) {
    Value *const value = hold<Value>();
    watch(name, value);
    return value;
  }

  // A structure that the call reads. It is filled with zeroes and kept as long as the outputs.
  template <class Value>
  Value *hold() {
    held_.push_back(std::make_shared<Value>());
    return static_cast<Value *>(held_.back().get());
  }

  // Declares a field of the structure that hold() returned as an output.
  template <class Value>
  void watch(const std::string &name, Value *value) {
    std::memset(static_cast<void *>(value), kPattern, sizeof *value);
    places_.push_back({name, reinterpret_cast<const unsigned char *>(value), sizeof *value});
  }

  // Returns one line for each output.
  std::string lines() const {
    std::string text;
    for (const Place &place : places_) text += place.name + " " + state(place) + "\n";
    return text;
  }

 private:
  static constexpr unsigned char kPattern = 0x5a;
  struct Place {
    std::string name;
    const unsigned char *bytes;
    std::size_t count;
  };
  static const char *state(const Place &place) {
    const auto all = [&](unsigned char value) {
      return std::all_of(place.bytes, place.bytes + place.count, [=](unsigned char byte) { return byte == value; });
    };
    return all(kPattern) ? "untouched" : all(0) ? "zeroed" : "changed";
  }

  std::vector<std::shared_ptr<void>> held_;
  std::vector<Place> places_;
};

// Adds the code and the output lines of one trial to a test.
inline void record(Test &test, const std::string &trial, const std::string &lines) {
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const std::size_t space = line.find(' ');
    const std::string key = trial + "." + line.substr(0, space), value = line.substr(space + 1);
    if (line.substr(0, space) == "code") {
      test.number(key, std::atoi(value.c_str()));
    } else {
      test.text(key, value);
    }
  }
}

}  // namespace question
