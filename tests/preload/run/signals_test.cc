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

TEST_CASE("a signal that was ignored when we started is forwarded all the same; the command decides") {
  Child child(kAwait, {}, [] { std::signal(SIGHUP, SIG_IGN); });
  REQUIRE(child.read_line() == "ready");
  child.signal(SIGHUP);   // ignored by the command, too, where the kernel keeps no blocked ignored signal
  child.signal(SIGTERM);  // arrives in any case
  const int status = child.wait().status;
  CHECK((status == SIGHUP || status == SIGTERM));
}

TEST_CASE("an interrupt from the terminal arrives once, not twice") {
  Child child(kCount, {}, {}, true);
  REQUIRE(child.read_line() == "ready");
  child.type("\x03");
  REQUIRE(child.read_line() == "interrupted");
  // A second, forwarded interrupt would have a lower number than this and arrive before it.
  child.signal(SIGTERM);
  const Ended ended = child.wait();
  CHECK(ended.out == "ready\ninterrupted\ninterrupts 1\n");
  CHECK(ended.status == 0);
}

TEST_CASE("an interrupt that somebody sends to us alone is forwarded") {
  Child child(kCount, {}, {}, true);
  REQUIRE(child.read_line() == "ready");
  child.signal(SIGINT);
  REQUIRE(child.read_line() == "interrupted");
  child.signal(SIGTERM);
  CHECK(child.wait().out == "ready\ninterrupted\ninterrupts 1\n");
}

TEST_CASE("a command that stops and goes on is waited for") {
  const Ended ended = run_test::ration_run({PROBE, "stop"});
  CHECK(ended.status == 5);
}
