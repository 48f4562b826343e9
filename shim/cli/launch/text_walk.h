// Follows the commands of a piece of text: a shell's command line, a script or a makefile. Layer: cli. Threads: one.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/launch/shell_variables.h"
#include "cli/launch/walk_state.h"

namespace ration::cli {

// The text of a file. Empty if the file is unreadable or too long, or if the budget is used up.
std::string text_of_file(const std::string &path, int &budget);

class TextWalk {
 public:
  using Words = std::vector<std::string>;

  // `state`: the state before the text; its member `text` is the text's kind. `arguments`: those of a script, for "$@".
  explicit TextWalk(WalkState state, Words arguments = {});

  void read(const std::string &text);
  // Call this if the text is not shell code, or if the order of its commands is unknown. `about`: what the text does
  // that cannot be followed and that may remove the library.
  void doubt(const std::string &about = {}) {
    is_plain_ = false;
    doubt_ = doubt_.empty() ? about : doubt_;
  }
  // Adds another command that the text starts.
  void add(Words words);

  // If the text starts exactly one command, returns that command. Otherwise records the losses in `state`.
  Words settle(WalkState &state);

 private:
  struct Start {
    Words words;
    WalkState before;
    bool is_sure;         // the command certainly gets the environment in `before`
    bool is_conditional;  // the command might not be started
  };
  struct Found;

  void step(const ShellCommand &command);
  Words expanded(const Words &words) const;
  void read_now(const std::string &text, bool certainly);
  void run(Words words, const ShellCommand &command, bool is_sure);
  bool run_builtin(const Words &words, const ShellCommand &command);
  template <class Change>
  void change(const ShellCommand &command, const Change &make);
  void take(const std::string &variable, bool keeps);
  void assign_all(const Words &words, bool exports, bool is_certain);
  void set_unknown(const std::string &variable, const ShellCommand &command);
  void read_file(const Words &words, bool certainly);
  void move(const std::string &folder, const ShellCommand &command);
  Found follow_all(WalkState &state) const;
  bool mentions_preload() const;
  bool names_ours() const;
  bool is_one_command() const;
  void describe(WalkState &state, const std::string &about) const;

  WalkState state_;
  ShellVariables variables_;
  bool exports_preload_;
  bool exports_all_ = false;  // set -a
  std::vector<Start> starts_;
  Words later_;                   // the commands that traps run
  std::string code_;              // without comments
  std::string doubt_;             // a part of the text that cannot be followed
  bool is_plain_ = true;          // all commands are known and run in the recorded order
  bool is_over_ = false;          // execution does not reach the rest of the text
  bool is_returned_ = false;      // it does not reach the rest of the file that is being read
  bool is_in_file_ = false;       // a file is being read as a part of the text
  bool is_of_system_ = false;     // that file is one of the system: /etc/profile
  bool is_doubtful_ = false;      // it is uncertain whether a change was made
  bool list_changes_ = false;     // this command's list (a && b || c) has changed something
  bool list_may_change_ = false;  // like list_changes_, but the command with the change might not run
  bool list_may_move_ = false;    // this list may have changed the folder
  std::optional<std::pair<std::string, bool>> folder_before_;  // as it was before a separate process changed it
  bool is_instead_ = false;                                    // the command runs only if an earlier change failed
};

}  // namespace ration::cli
