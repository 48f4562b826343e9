// Signals on their way to the command. Every step waits for what the step before it made the command say.
#include <csignal>

#include "catch.h"
#include "child.h"

using run_test::Child;
using run_test::Ended;

namespace {

const std::vector<std::string> kAwait = {COMMAND_UNDER_TEST, "run", PROBE, "await"};
const std::vector<std::string> kCount = {COMMAND_UNDER_TEST, "run", PROBE, "count"};

}  // namespace

TEST_CASE("INT TERM HUP QUIT reach the command") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    INFO(number);
    Child child(kAwait);
    REQUIRE(child.read_line() == "ready");
    child.signal(number);
    const Ended ended = child.wait();
    CHECK(ended.out == "ready\nsignal " + std::to_string(number) + "\n");
    CHECK(ended.status == number);
  }
}

TEST_CASE("what the terminal gives to the whole foreground group is not given to the command again") {
  // The command has left the group, so that whatever interrupt it gets comes from us.
  Child child(kCount, {}, {}, true);
  REQUIRE(child.read_line() == "ready");
  child.type("\x03");
  child.await_echo("^C");  // the terminal has interrupted by now
  child.signal(SIGTERM);   // a higher number: taken, and forwarded, behind the interrupt
  CHECK(child.wait().out == "ready\ninterrupts 0\n");
}

TEST_CASE("an interrupt that somebody sends to us alone is forwarded, with a terminal too") {
  Child child(kCount, {}, {}, true);
  REQUIRE(child.read_line() == "ready");
  child.signal(SIGINT);
  child.signal(SIGTERM);
  CHECK(child.wait().out == "ready\ninterrupts 1\n");
}

TEST_CASE("a hang-up, which the terminal tells the leader of its session alone, is passed on") {
  Child child(kAwait, {}, {}, true);
  REQUIRE(child.read_line() == "ready");
  child.hang_up();
  const Ended ended = child.wait();
  CHECK(ended.out == "ready\nsignal " + std::to_string(SIGHUP) + "\n");
  CHECK(ended.status == SIGHUP);
}

TEST_CASE("a signal that comes when the command has ended does not take its exit status away") {
  CHECK(run_test::ration_run({PROBE, "end"}).status == 9);
}

TEST_CASE("a command that stops and goes on is waited for") {
  const Ended ended = run_test::ration_run({PROBE, "stop"});
  CHECK(ended.status == 5);
}
