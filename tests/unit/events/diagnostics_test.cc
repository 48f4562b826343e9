#include "events/diagnostics.h"

#include "catch.h"
#include "unit/events/child_process.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("a message is one line of stderr, whatever the text contains") {
  CHECK(stderr_of([] { events::say("a limit\nof \r\n{} and %s"); }) == "ration: a limit of   {} and %s\n");
}

TEST_CASE("a message to a stderr without a reader does not end the program") {
  CHECK(exit_code_of([] {
          int ends[2];
          if (pipe(ends) != 0) {
            return 1;
          }
          dup2(ends[1], STDERR_FILENO);
          close(ends[0]);
          events::say("hello?");
          sigset_t pending;
          sigpending(&pending);
          return sigismember(&pending, SIGPIPE) == 0 ? 0 : 2;
        }) == 0);
}
