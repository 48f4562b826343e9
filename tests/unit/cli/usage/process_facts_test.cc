#include "cli/usage/process_facts.h"

#include <sys/wait.h>
#include <unistd.h>

#include "catch.h"

using namespace ration::cli;

TEST_CASE("a command line has blanks between its words, and is unknown where there is no process") {
  CHECK_FALSE(command_line(getpid()).empty());
  CHECK(command_line(getpid()).find('\0') == std::string::npos);
  CHECK(command_line(-1).empty());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    _exit(0);
  }
  siginfo_t ended{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(command_line(child).empty());  // a zombie has none
  CHECK(owner_of(child) == geteuid());
  waitpid(child, nullptr, 0);
  CHECK_FALSE(owner_of(child).has_value());
}

TEST_CASE("a user without a name is a number") {
  CHECK(user_name(0) == "root");
  CHECK(user_name(3999999999) == "3999999999");
}
