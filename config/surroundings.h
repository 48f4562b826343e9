// Everything that settings are read from, and the reading of it. Layer: config. Threads: values.
// Called from: first use, once, and the command; a call of the program's never reads an environment or a file.
#pragma once

#include <string>
#include <vector>

#include "config/program_rules.h"
#include "config/settings.h"
#include "config/settings_file.h"
#include "config/small_file.h"

namespace ration::config {

struct Surroundings {
  const char *const *environment = nullptr;  // NULL-terminated "NAME=value" list
  ProgramIdentity program;                   // whom the rules of files are about
  std::string system_folder;                 // empty: there is none
  // The kernel runs the program with more rights than whoever started it has (AT_SECURE): no file that this one names
  // is read or written in its name, not even to complain of what is in it.
  bool privileged = false;
  std::string framework;  // loaded here, and reads its own variables of the field itself; empty: none
};

// Of this process. The system folder is fixed when Ration is built: a ceiling whose place a variable could name would
// be none.
Surroundings own_surroundings();
std::string system_folder();

// Where files are looked for, the strongest first; of the system folder's drop-ins those that are there.
struct FilePlace {
  std::string path;
  Source source;
  Trust trust;
};
std::vector<FilePlace> places_of_files(const Surroundings &surroundings);

// Throws nothing but bad_alloc.
Settings read_settings(const Surroundings &surroundings, std::vector<Problem> &problems);

// What is wrong with one statement by itself, empty when nothing is: the value as its option reads it.
std::string complain_of_statement(const Statement &statement);

}  // namespace ration::config
