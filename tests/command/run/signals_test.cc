// Signals that reach the command. Each step waits for the output that the previous step caused.
#include <unistd.h>

#include <csignal>

#include "catch.h"
#include "child.h"

using run_test::Child;
using run_test::Ended;

namespace {

const std::vector<std::string> kAwait = {COMMAND_UNDER_TEST, "run", PROBE, "await"};
const std::vector<std::string> kCount = {COMMAND_UNDER_TEST, "run", PROBE, "count"};

}  // namespace

TEST_CASE("each signal that can be caught reaches the command") {
  for (int number = 1; number <= SIGRTMAX; ++number) {
    const bool job_control = number == SIGTTIN || number == SIGTTOU;
    const bool of_libc = number > SIGSYS && number < SIGRTMIN;
    if (number == SIGKILL || number == SIGSTOP || number == SIGCHLD || job_control || of_libc) continue;
    INFO(number);
    Child child(kAwait);
    REQUIRE(child.read_line() == "ready");
    child.signal(number);
    const Ended ended = child.wait();
    CHECK(ended.out == "ready\nsignal " + std::to_string(number) + "\n");
    CHECK(ended.status == number);
  }
}

TEST_CASE("a signal from the terminal to the foreground group is not forwarded again") {
  // The command has left the group, so that an interrupt can only come from `ration`.
  Child child(kCount, {}, {}, true);
  REQUIRE(child.read_line() == "ready");
  child.type("\x03");
  child.await_echo("^C");  // the terminal has sent the interrupt by now
  child.signal(SIGTERM);   // a higher number: accepted and forwarded after the interrupt
  CHECK(child.wait().out == "ready\ninterrupts 0\n");
}

TEST_CASE("an interrupt that is sent only to ration is forwarded, also with a terminal") {
  Child child(kCount, {}, {}, true);
  REQUIRE(child.read_line() == "ready");
  child.signal(SIGINT);
  child.signal(SIGTERM);
  CHECK(child.wait().out == "ready\ninterrupts 1\n");
}

TEST_CASE("a signal to the whole group is not forwarded to it again") {
  // The command has left the group, as above.
  for (int round = 0; round < 30; ++round) {
    Child child(kCount, {}, [] { setpgid(0, 0); });
    REQUIRE(child.read_line() == "ready");
    child.signal_group(SIGINT);
    child.signal(SIGTERM);
    CHECK(child.wait().out == "ready\ninterrupts 0\n");
  }
}

TEST_CASE("a stop that is sent to ration alone stops the command, and a continuation continues it") {
  Child child({COMMAND_UNDER_TEST, "run", "--", "sh", "-c", "echo $$; exec tail -f /dev/null"}, {},
              [] { setpgid(0, 0); });
  const std::string pid = child.read_line();
  child.signal(SIGTSTP);
  CHECK(run_test::reaches_state(pid, 'T'));
  child.signal(SIGCONT);
  CHECK(run_test::reaches_state(pid, 'S'));
  child.signal(SIGTERM);
  CHECK(child.wait().status == 128 + SIGTERM);
}

TEST_CASE("a hang-up, which the terminal sends only to the session's leader, is forwarded") {
  Child child(kAwait, {}, {}, true);
  REQUIRE(child.read_line() == "ready");
  child.hang_up();
  const Ended ended = child.wait();
  CHECK(ended.out == "ready\nsignal " + std::to_string(SIGHUP) + "\n");
  CHECK(ended.status == SIGHUP);
}

TEST_CASE("a signal after the command's end does not replace its exit status") {
  CHECK(run_test::ration_run({PROBE, "end"}).status == 9);
}

TEST_CASE("a command that stops and continues is waited for") {
  const Ended ended = run_test::ration_run({PROBE, "stop"});
  CHECK(ended.status == 5);
}
