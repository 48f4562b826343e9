// Follows the commands of a text: a shell's command line, a script, a makefile. Layer: cli. Threads: one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/launch/walk_state.h"

namespace ration::cli {

// Empty if it cannot be read, is long, or the budget does not allow it.
std::string text_of_file(const std::string &path, int &budget);

class TextWalk {
 public:
  using Words = std::vector<std::string>;

  // `state`: before the text; its `text` names the kind. `arguments`: those of a script, for "$@".
  explicit TextWalk(WalkState state, Words arguments = {});

  void read(const std::string &text);
  // To be called if the text is not a shell's, or its commands are in no known order.
  void doubt() { is_plain_ = false; }
  // A command that is started, too.
  void add(Words words);

  // Notes in `state` what the text loses. Returns the command that follows if the text starts exactly that one.
  Words settle(WalkState &state);

 private:
  struct Start {
    Words words;
    WalkState before;
    bool is_sure;         // `before` is what it gets
    bool is_conditional;  // it may not be started
  };
  struct Found;

  void step(const ShellCommand &command);
  Words expanded(const Words &words) const;
  void run(Words words, const ShellCommand &command, bool is_sure);
  bool run_builtin(const Words &words, const ShellCommand &command);
  template <class Change>
  void change(const ShellCommand &command, const Change &make);
  void take(const std::string &variable, bool keeps);
  void assign_all(const Words &words, bool exports);
  void read_file(const std::string &name, bool certainly);
  Found follow_all(WalkState &state) const;
  bool mentions_preload() const;
  bool is_one_command() const;
  void describe(WalkState &state, const std::string &about) const;

  WalkState state_;
  std::optional<Words> arguments_;
  Words unexported_;  // NAME=VALUE
  bool exports_preload_;
  std::vector<Start> starts_;
  std::string code_;              // without comments
  bool is_plain_ = true;          // all commands are known, and run in their order
  bool is_over_ = false;          // what follows is not reached
  bool is_doubtful_ = false;      // a change may have been made or not
  bool list_changes_ = false;     // in the list of this command (a && b || c) something was changed
  bool list_may_change_ = false;  // the same, by a command that may not have run
  bool list_may_move_ = false;    // the folder may have changed
  bool is_instead_ = false;       // the command runs only if an earlier change failed
};

}  // namespace ration::cli
