// Exit statuses, streams, and the state in which a command starts.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "child.h"

using run_test::Ended;
using run_test::ration_run;
using Words = std::vector<std::string>;

namespace {

struct Folder {
  std::string path = "/tmp/ration-run-test-XXXXXX";
  Folder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("the exit status is the command's") {
  CHECK(ration_run({"--", "sh", "-c", "exit 0"}).status == 0);
  CHECK(ration_run({"--", "sh", "-c", "exit 3"}).status == 3);
  CHECK(ration_run({"--", "sh", "-c", "exit 255"}).status == 255);
  CHECK(ration_run({"--", "sh", "-c", "kill -KILL $$"}).status == 128 + SIGKILL);
  CHECK(ration_run({"--", "sh", "-c", "kill -TERM $$"}).status == 128 + SIGTERM);
  CHECK(ration_run({"--", "sh", "-c", "ulimit -c 0; kill -SEGV $$"}).status == 128 + SIGSEGV);
}

TEST_CASE("a crash is said, and a signal that a user sends is not") {
  const Ended crashed = ration_run({"--", "sh", "-c", "ulimit -c 0; kill -SEGV $$"});
  CHECK(crashed.err == "ration: sh was ended by signal 11 (Segmentation fault)\n");
  CHECK(ration_run({"--", "sh", "-c", "kill -KILL $$"}).err == "ration: sh was ended by signal 9 (Killed)\n");
  CHECK(ration_run({"--", "sh", "-c", "kill -TERM $$"}).err.empty());
  CHECK(ration_run({"-q", "--", "sh", "-c", "kill -KILL $$"}).err.empty());
}

TEST_CASE("each reason that a command cannot start has its exit status and one line") {
  const Folder folder;
  std::ofstream(folder.path + "/plain") << "exit 3\n";
  std::ofstream(folder.path + "/orphan") << "#!/no/such/interpreter\n";
  chmod((folder.path + "/orphan").c_str(), 0755);
  std::ofstream(folder.path + "/loop") << "#!" << folder.path << "/loop\n";
  chmod((folder.path + "/loop").c_str(), 0755);
  const std::pair<Words, int> rows[] = {
      {{"no-such-command-anywhere"}, 127},
      {{"/no/such/command"}, 127},
      {{folder.path + "/plain"}, 126},
      {{folder.path}, 126},
      {{folder.path + "/orphan"}, 127},
      {{folder.path + "/loop"}, 126},
      {{}, 125},
      {{""}, 125},
      {{"--"}, 125},
      {{"--", ""}, 125},
      {{"--limt", "8g", "true"}, 125},
      {{"--limit", "8Gib", "true"}, 125},
  };
  for (const auto &[arguments, status] : rows) {
    INFO((arguments.empty() ? "" : arguments.back()));
    const Ended ended = ration_run(arguments);
    INFO(ended.err);
    CHECK(ended.status == status);
    CHECK(ended.out.empty());
    CHECK(run_test::lines_in(ended.err) == 1);
    CHECK(ended.err.find("ration: ") == 0);
  }
}

TEST_CASE("an executable text file is run by the shell, as with execvp") {
  const Folder folder;
  std::ofstream(folder.path + "/script") << "echo \"$0 $1\"; exit 4\n";
  chmod((folder.path + "/script").c_str(), 0755);
  const Ended ended = ration_run({folder.path + "/script", "one"});
  CHECK(ended.status == 4);
  CHECK(ended.out == folder.path + "/script one\n");
}

TEST_CASE("options after the command belong to the command") {
  CHECK(ration_run({"echo", "--limit", "x", "--help"}).out == "--limit x --help\n");
  CHECK(ration_run({"--limit", "1g", "--", "echo", "--", "-h"}).out == "-- -h\n");
  CHECK(ration_run({"--limit=1g", "echo", "a"}).out == "a\n");
}

TEST_CASE("only the command writes to stdout") {
  const Ended ended = ration_run({"sh", "-c", "echo out; echo err >&2"});
  CHECK(ended.out == "out\n");
  CHECK(ended.err == "err\n");
}

TEST_CASE("a closed stderr does not change the exit status") {
  CHECK(ration_run({"sh", "-c", "exit 6"}, {}, [] { close(STDERR_FILENO); }).status == 6);
  CHECK(ration_run({"sh", "-c", "exit 6"}, {}, [] {
          int ends[2];
          if (pipe(ends) == 0) {
            dup2(ends[1], STDERR_FILENO);
            close(ends[0]);
            close(ends[1]);
          }
        }).status == 6);
}

TEST_CASE("a command starts with the signals and descriptors that it has without ration") {
  const auto peculiar = [] {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGCHLD, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    close(STDIN_FILENO);
  };
  CHECK(ration_run({PROBE, "start"}).out == run_test::run({PROBE, "start"}).out);
  CHECK(ration_run({PROBE, "start"}, {}, peculiar).out == run_test::run({PROBE, "start"}, {}, peculiar).out);
}

TEST_CASE("the exit status is known although SIGCHLD was ignored") {
  CHECK(ration_run({"sh", "-c", "exit 7"}, {}, [] { std::signal(SIGCHLD, SIG_IGN); }).status == 7);
}

TEST_CASE("nothing is left in the temporary folder") {
  const Folder folder;
  CHECK(ration_run({"--sim", "1GiB", "sh", "-c", "test -d \"$RATION_SUMMARY\""}, {"TMPDIR=" + folder.path}).status ==
        0);
  CHECK(std::filesystem::is_empty(folder.path));
  CHECK(ration_run({"--limit", "x", "true"}, {"TMPDIR=" + folder.path}).status == 125);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("help and version go to stdout, and a line without a verb is an error") {
  const Ended help = run_test::run({COMMAND_UNDER_TEST, "run", "--help-all"});
  CHECK(help.status == 0);
  CHECK(help.err.empty());
  for (const char *part : {"--limit", "--mode", "--log", "--sim", "--reserve", "--show-limit", "Examples:", "125"}) {
    INFO(part);
    CHECK(help.out.find(part) != std::string::npos);
  }
  CHECK(run_test::run({COMMAND_UNDER_TEST, "--version"}).out.find("ration ") == 0);
  CHECK(run_test::run({COMMAND_UNDER_TEST}).status == 2);
  CHECK(run_test::run({COMMAND_UNDER_TEST, "no-verb"}).status == 2);
}
