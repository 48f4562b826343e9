#include "events/diagnostics.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "catch.h"
#include "unit/events/child_process.h"
#include "unit/events/scratch_folder.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("a message is one line of stderr, whatever the text contains") {
  CHECK(stderr_of([] { events::say("a limit\nof \r\n{} and %s"); }) == "ration: a limit of   {} and %s\n");
}

TEST_CASE("a decision is written from its level on, with the process and the level") {
  const auto both = [] {
    events::explain(events::Level::info, "device ", 0, ": ", UINT64_MAX, " bytes, error ", -1);
    events::explain(events::Level::debug, std::string("why\n"));
  };
  const auto lines_at = [&](events::Level level) {
    return stderr_of([&] {
      events::begin_diagnostics(level, {});
      both();
      events::say("a warning");
    });
  };
  const auto without_process = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('[', at)) != std::string::npos;) {
      text.erase(at, text.find(']', at) + 1 - at);
    }
    return text;
  };
  const std::string warning = "ration: a warning\n";
  const std::string info = "ration: info: device 0: 18446744073709551615 bytes, error -1\n";
  CHECK(lines_at(events::Level::off).empty());
  CHECK(lines_at(events::Level::warn) == warning);
  CHECK(without_process(lines_at(events::Level::info)) == info + warning);
  CHECK(without_process(lines_at(events::Level::debug)) == info + "ration: debug: why \n" + warning);
}

TEST_CASE("a line of diagnostics does not cross a page of their file") {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/lines";
  CHECK(stderr_of([&] {
          events::begin_diagnostics(events::Level::trace, path);
          for (int i = 0; i < 200; ++i) {
            events::explain(events::Level::trace, std::string(static_cast<std::size_t>(i) * 3, 'a'));
          }
          events::explain(events::Level::trace, std::string(10'000, 'b'));
        }).empty());
  std::ifstream file(path);
  std::size_t offset = 0;
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line); offset += line.size() + 1) {
    CHECK(offset / 4096 == (offset + line.size()) / 4096);
    lines += line.starts_with("ration[") ? 1 : 0;
  }
  CHECK(lines == 201);
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
