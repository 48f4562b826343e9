#include "events/diagnostics.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "catch.h"
#include "unit/events/child_process.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("a message is one line of stderr, whatever the text contains") {
  CHECK(stderr_of([] { events::say("a limit\nof \r\n{} and %s"); }) == "ration: a limit of   {} and %s\n");
}

TEST_CASE("a message to a stderr at the file size limit does not end the program") {
  CHECK(exit_code_of([] {
          const int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
          const rlimit none{0, 0};
          if (file < 0 || dup2(file, STDERR_FILENO) < 0 || setrlimit(RLIMIT_FSIZE, &none) != 0) {
            return 1;
          }
          events::say("hello?");
          sigset_t pending;
          sigpending(&pending);
          return sigismember(&pending, SIGXFSZ) == 0 ? 0 : 2;
        }) == 0);
}

TEST_CASE("a signal that was pending before a message stays") {
  CHECK(exit_code_of([] {
          int ends[2];
          sigset_t pipe_signal;
          sigemptyset(&pipe_signal);
          sigaddset(&pipe_signal, SIGPIPE);
          if (pipe(ends) != 0 || pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr) != 0 || raise(SIGPIPE) != 0) {
            return 1;
          }
          dup2(ends[1], STDERR_FILENO);
          close(ends[0]);
          events::say("hello?");
          sigset_t pending;
          sigpending(&pending);
          return sigismember(&pending, SIGPIPE) == 1 ? 0 : 2;
        }) == 0);
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
