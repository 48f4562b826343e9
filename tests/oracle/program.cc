#include "tests/oracle/program.h"

#include <cstdlib>
#include <istream>
#include <sstream>

namespace oracle {
namespace {

void read_line(const std::string &line, Program &program) {
  std::istringstream words(line);
  std::string first;
  if (!(words >> first) || first[0] == '#') return;
  std::string word;
  if (first == "program") {
    words >> program.name;
  } else if (first == "set" && words >> word) {
    const size_t equals = word.find('=');
    program.environment.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  } else if (first == "waited") {
    for (size_t step = 0; words >> step;) {
      if (program.waited.size() <= step) program.waited.resize(step + 1);
      program.waited[step] = true;
    }
  } else if (first == "together") {
    words >> program.rounds;
  } else if (first == "late") {
    program.late = true;
  } else if (first[0] == 't' && first.size() == 2) {
    Step step;
    step.thread = number_of(first);
    words >> step.verb;
    while (words >> word) step.words.push_back(word);
    program.steps.push_back(std::move(step));
  }
}

}  // namespace

int number_of(const std::string &word) {
  const size_t digit = word.find_first_of("0123456789");
  return digit == std::string::npos ? -1 : std::atoi(word.c_str() + digit);
}

bool read_program(std::istream &input, Program &program) {
  program = {};
  for (std::string line; std::getline(input, line);) {
    if (line == "end") {
      program.waited.resize(program.steps.size());
      return true;
    }
    read_line(line, program);
  }
  return false;
}

}  // namespace oracle
