// The facts known at one point of a command line, such as the next command's environment and earlier losses. Layer:
// cli. Threads: values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/launch/command_walk.h"

namespace ration::cli {

inline constexpr const char *kPreload = "LD_PRELOAD";
inline constexpr const char *kEmptied = "starts its command without LD_PRELOAD as it is called here";

struct WalkState {
  // The kind of text from which the command reads its own commands.
  enum class Text { kNone, kLine, kScript, kMakefile, kArgument };

  const EnvironmentBlock *own;
  const Library *library;
  int *budget;  // how many more commands in pieces of text may be followed
  CommandWalk walk;
  std::string name;  // the command that is being examined
  Text text = Text::kNone;
  std::string script;             // the script's path
  bool is_named_by_path = false;  // as in ./env, so this or an earlier command may be another program of that name
  std::string folder;             // the folder in which the next command runs; empty: our own
  bool is_folder_known = true;
  bool is_kept_by_shell = false;  // $LD_PRELOAD in the command's words stands for a value with the library

  [[nodiscard]] std::string put_behind() const;
  [[nodiscard]] bool is_set(const std::string &variable) const;
  void lose(const std::string &reason, std::string remedy);
  void clear_environment(const std::string &search_path);
  // Sets the variable. Unlike set(), does not note whether that changes one of our settings.
  void give(const std::string &variable, const std::string &value);
  void set(const std::string &variable, const std::string &value);
  void unset(const std::string &variable);
  // Sets NAME=VALUE. A VALUE that the shell expands is unknown, unless it extends the old value (PATH=x:$PATH).
  void assign(std::string_view word);
  // Sets the variables of the leading NAME=VALUE words; returns the command after them.
  std::vector<std::string> after_assignments(std::vector<std::string> words);
  // Sets each NAME=VALUE. For a word that is only a NAME, takes the value from our environment.
  void set_all(const std::vector<std::string> &words);
  void enter(const std::string &new_folder);
  // Resolves a path that is relative to `folder`; nullopt if that folder is unknown.
  [[nodiscard]] std::optional<std::string> path_from_here(const std::string &path) const;

 private:
  void note_change(const std::string &variable, const std::string &becomes);
  void lose_preload(const std::string &reason, const std::string &more);
};

// Follows the command given by `words` to the program that it starts.
CommandWalk follow(WalkState state, const std::vector<std::string> &words);

}  // namespace ration::cli
