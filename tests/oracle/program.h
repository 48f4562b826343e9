// The text of a program, one operation per line: `t1 alloc b3 1048576` is what thread 1 does. README.md lists the
// operations. Layer: none. Threads: one.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace oracle {

struct Step {
  int thread = 0;
  std::string verb;
  std::vector<std::string> words;  // the operation's arguments
};

struct Program {
  std::string name;
  std::vector<std::pair<std::string, std::string>> environment;  // `set NAME=VALUE`
  std::vector<bool> waited;  // `waited I...`: the steps that waited in the native run
  int rounds = 0;     // `together N`: the threads run side by side and repeat their steps N times; 0: they take turns
  bool late = false;  // `late`: work that ended during a wait in the native run ends here only when a call waits
  std::vector<Step> steps;
};

// Reads the next program, from its line `program NAME` to `end`. Returns false at the end of the input.
bool read_program(std::istream &input, Program &program);

// Returns the number in a word, such as 3 for `b3`; -1 if there is none.
int number_of(const std::string &word);

}  // namespace oracle
