#include "cli/doctor/clearing_commands.h"

#include "catch.h"

using ration::cli::doctor::clearing_command;

namespace {

std::string cleared_by(const std::vector<std::string> &words) {
  return clearing_command(words).name;
}

}  // namespace

TEST_CASE("a command that clears the environment is known by its name, in any folder") {
  CHECK(cleared_by({"sudo", "ls"}) == "sudo");
  CHECK(cleared_by({"/usr/bin/ssh", "host", "ls"}) == "ssh");
  CHECK(cleared_by({"sudoku"}).empty());
  CHECK(cleared_by({}).empty());
  CHECK(clearing_command({"doas", "ls"}).remedy == "put ration run behind it: doas ... ration run OPTIONS -- COMMAND");
}

TEST_CASE("some clear it only with an option, which must be theirs") {
  CHECK(cleared_by({"env", "-i", "A=1", "ls"}) == "env");
  CHECK(cleared_by({"env", "A=1", "-", "ls"}) == "env");
  CHECK(cleared_by({"env", "-u", "LD_PRELOAD", "ls"}) == "env");
  CHECK(cleared_by({"env", "-u", "HOME", "-u", "LD_PRELOAD", "ls"}) == "env");
  CHECK(cleared_by({"env", "LD_PRELOAD=", "ls"}) == "env");
  CHECK(cleared_by({"env", "A=1", "grep", "-i", "x"}).empty());
  CHECK(cleared_by({"env"}).empty());
  CHECK(cleared_by({"docker", "run", "image"}) == "docker");
  CHECK(cleared_by({"docker", "--log-level=debug", "exec", "c", "ls"}) == "docker");
  CHECK(cleared_by({"docker", "ps"}).empty());
  CHECK(cleared_by({"runuser", "-l", "user"}) == "runuser");
  CHECK(cleared_by({"runuser", "-u", "user", "--", "su"}).empty());
}

TEST_CASE("commands that only change how another one runs are looked through") {
  CHECK(cleared_by({"nice", "-n", "5", "timeout", "10m", "sudo", "ls"}) == "sudo");
  CHECK(cleared_by({"env", "A=1", "nohup", "ssh", "host"}) == "ssh");
  CHECK(cleared_by({"nice", "ls", "sudo"}).empty());
  CHECK(cleared_by({"nice", "-n"}).empty());
}
