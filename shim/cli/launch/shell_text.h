// Splits a shell's command line, or the text of a script, into the commands that it starts. Recognises simple commands
// joined by ; && || | & and newlines. In other constructs, finds the commands but cannot tell when they run.
// Layer: cli. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

// A word that the shell expands ($NAME, *.c) begins with this byte, which no argument of a process can contain.
inline constexpr char kExpanded = '\0';

bool is_expanded(std::string_view word);
// The word as it is written in the text, without the byte kExpanded and without quotes.
std::string text_of(std::string_view word);

struct ShellCommand {
  enum class Joint { kNext, kAnd, kOr };
  std::vector<std::string> words;  // without redirections; not empty
  Joint before = Joint::kNext;     // how it is joined to the previous command
  bool is_aside = false;           // it runs in its own process, as part of a pipeline or in the background
  bool is_fed = false;             // its standard input is redirected
  std::string input;               // its last here-document
};

struct ShellText {
  std::vector<ShellCommand> commands;
  bool is_plain = true;  // the text consists of simple commands, and all of them were found
  std::string code;      // the text without comments and here-documents
};

ShellText read_shell_text(std::string_view text);

// The words of the text if it is a single simple command in which the shell expands nothing; nullopt otherwise.
std::optional<std::vector<std::string>> simple_command(std::string_view text);
// True if the text has $LD_PRELOAD in it.
bool reads_preload(std::string_view text);
// True if the word is NAME=VALUE in the form that shells, env and sudo accept.
bool is_assignment(std::string_view word);

}  // namespace ration::cli
