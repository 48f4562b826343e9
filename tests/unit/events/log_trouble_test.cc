// Full disks, paths that cannot be written, descriptors that the program closed: the program is never affected.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "catch.h"
#include "unit/events/child_process.h"
#include "unit/events/journal_fixture.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"

using namespace ration;
using namespace ration::test;

namespace {

// The soft limit only, so that it can be raised again.
void limit_file_size(rlim_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  setrlimit(RLIMIT_FSIZE, &limit);
}

std::string problem_of_log(const std::string &path) {
  std::string problem;
  events::Journal journal(logging_to(path), problem);
  CHECK_FALSE(journal.logging());
  journal.describe(two_devices(), 0);
  journal.record(an_alloc(0x1000, 1));
  CHECK(journal.tally().devices[0].allocs == 1);
  journal.end(nullptr);
  return problem;
}

}  // namespace

TEST_CASE("a log that cannot be opened is one sentence with its path, and the totals go on") {
  const ScratchFolder folder;
  const std::string missing = folder / "no/such/folder/log";
  CHECK(problem_of_log(missing) == missing + ": No such file or directory");
  CHECK(problem_of_log(folder.path()) == folder.path() + ": Is a directory");
  const std::string fifo = folder / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(problem_of_log(fifo) == fifo + ": not a regular file");
}

TEST_CASE("a file that is no log stays as it is") {
  const ScratchFolder folder;
  const std::string script = folder / "train.py";
  std::ofstream(script) << "{ 'epochs': 3 }\n";
  CHECK(problem_of_log(script) == script + ": it is not a log, and stays as it is");
  std::stringstream contents;
  contents << std::ifstream(script).rdbuf();
  CHECK(contents.str() == "{ 'epochs': 3 }\n");
}

TEST_CASE("an earlier log is written anew, also one that is empty or ends in its first words") {
  const ScratchFolder folder;
  for (const std::string before :
       {"", "{\"t\":\"me", "{\"t\":\"meta\",\"schema\":\"ration.events/1\",\"ver\":\"0\"}\n{}\n"}) {
    std::ofstream(folder / "log") << before;
    std::string problem;
    events::Journal journal(logging_to(folder / "log"), problem);
    CHECK(problem.empty());
    CHECK(journal.logging());
  }
}

TEST_CASE("a standard stream of the program takes no log") {
  const ScratchFolder folder;
  const std::string output = folder / "output";
  const int before = dup(STDIN_FILENO);
  const int file = open(output.c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(dup2(file, STDIN_FILENO) == STDIN_FILENO);
  CHECK(problem_of_log(output) == output + ": it is a standard stream of the program");
  dup2(before, STDIN_FILENO);
  close(before);
  close(file);
}

TEST_CASE("where a program has closed a standard stream, its number is not the log's") {
  const ScratchFolder folder;
  const int before = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  std::string problem;
  {
    events::Journal journal(logging_to(folder / "log"), problem);
    CHECK(journal.logging());
    CHECK(fcntl(STDIN_FILENO, F_GETFD) == -1);
  }
  dup2(before, STDIN_FILENO);
  close(before);
}

TEST_CASE("a full device takes no record, and nothing is printed") {
  std::string problem;
  const std::string said = stderr_of([&] {
    events::Journal journal(logging_to("/dev/full"), problem);
    CHECK(journal.logging());
    journal.describe(two_devices(), 0);
    journal.record(an_alloc(0x1000, 7));
    journal.end(nullptr);
    CHECK(journal.tally().devices[0].peak_bytes == 7);
    CHECK(journal.tally().lost_records == 1);
  });
  CHECK(problem.empty());
  CHECK(said.empty());
}

TEST_CASE("a folder removed under the log costs nothing but the log") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "gone");
  std::string problem;
  events::Journal journal(logging_to(folder / "gone/log"), problem);
  journal.describe(two_devices(), 0);
  std::filesystem::remove_all(folder / "gone");
  journal.record(an_alloc(0x1000, 7));
  journal.end(nullptr);
  CHECK(journal.tally().devices[0].live_bytes == 7);
  CHECK_FALSE(std::filesystem::exists(folder / "gone"));
}

TEST_CASE("records that did not fit are counted where the log goes on") {
  const ScratchFolder folder;
  const int code = exit_code_of([&] {
    std::string problem;
    events::Journal journal(logging_to(folder / "log"), problem);
    journal.describe(two_devices(), 0);
    journal.record(an_alloc(0x1000, 1));
    limit_file_size(std::filesystem::file_size(folder / "log") + 100);  // less than a record
    for (int i = 0; i < 5; ++i) {
      journal.record(an_alloc(0x2000, 10));
    }
    limit_file_size(RLIM_INFINITY);
    journal.record(an_alloc(0x3000, 100));
    journal.end(nullptr);
    return 0;
  });
  CHECK(code == 0);  // 1000 + SIGXFSZ otherwise
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(is_consecutive(lines));
  REQUIRE(lines.size() == 5);
  CHECK(lines[2].at("t") == "dropped");
  CHECK(lines[2].at("count") == 5);
  CHECK(lines[3].at("addr") == "0x3000");
  CHECK(lines[4].at("dropped") == 5);
  CHECK(lines[4].at("allocs") == 7);
}

TEST_CASE("records lost at the end are counted before it") {
  const ScratchFolder folder;
  CHECK(exit_code_of([&] {
          std::string problem;
          events::Journal journal(logging_to(folder / "log"), problem);
          journal.describe(two_devices(), 0);
          limit_file_size(std::filesystem::file_size(folder / "log"));
          journal.record(an_alloc(0x2000, 10));
          limit_file_size(RLIM_INFINITY);
          journal.end(nullptr);
          return 0;
        }) == 0);
  const std::vector<json> lines = log_lines(folder / "log");
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].at("t") == "dropped");
  CHECK(lines[1].at("count") == 1);
  CHECK(lines[2].at("t") == "end");
  CHECK(is_consecutive(lines));
}

TEST_CASE("an end that finds no room takes that of the last records, and counts them as lost") {
  const ScratchFolder folder;
  CHECK(exit_code_of([&] {
          std::string problem;
          events::Journal journal(logging_to(folder / "log"), problem);
          journal.describe(two_devices(), 0);
          for (std::uint64_t i = 1; i <= 60; ++i) {
            journal.record(an_alloc(i << 12, i));
          }
          const std::uint64_t full = std::filesystem::file_size(folder / "log");
          limit_file_size(full);
          journal.record(an_alloc(0x100000, 100));
          journal.end(nullptr);
          journal.record(an_alloc(0x200000, 1000));  // of a destructor
          return std::filesystem::file_size(folder / "log") <= full && journal.tally().lost_error == EFBIG ? 0 : 1;
        }) == 0);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(is_consecutive(lines));
  REQUIRE(lines.back().at("t") == "end");
  CHECK(lines.back().at("allocs") == 62);
  const std::vector<json> dropped = of_type(lines, "dropped");
  REQUIRE(dropped.size() == 1);
  const std::uint64_t lost = lines.back().at("dropped");
  CHECK(lost > 2);
  CHECK(lost < 20);
  CHECK(dropped.front().at("count") == lost - 1);  // the last came after it
  CHECK(of_type(lines, "alloc").size() == 62 - lost);
  CHECK(text_of(folder / "log").find('\0') == std::string::npos);
}

TEST_CASE("lines after the end stay in one page each, so that an exit amid a write leaves the end whole") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.describe(two_devices(), 0);
  journal.end(nullptr);
  for (std::uint64_t i = 1; i <= 60; ++i) {
    journal.record(an_alloc(i << 12, i));
    const std::vector<json> lines = log_lines(folder / "log");
    CHECK(is_consecutive(lines));
    CHECK(lines.back().at("t") == "end");
    CHECK(lines.back().at("allocs") == i);
    CHECK(of_type(lines, "end").size() == 1);
  }
  std::size_t at = 0;
  std::istringstream text(text_of(folder / "log"));
  for (std::string line; std::getline(text, line); at += line.size() + 1) {
    CHECK(at / 4096 == (at + line.size()) / 4096);
  }
  CHECK(at > 3 * 4096);
}

TEST_CASE("where the end finds no room in the next page, it stays and counts the loss") {
  const ScratchFolder folder;
  CHECK(exit_code_of([&] {
          std::string problem;
          events::Journal journal(logging_to(folder / "log"), problem);
          journal.describe(two_devices(), 0);
          journal.end(nullptr);
          limit_file_size(4096);
          for (std::uint64_t i = 1; i <= 20; ++i) {
            journal.record(an_alloc(i << 12, i));
          }
          limit_file_size(RLIM_INFINITY);
          journal.record(an_alloc(0x100000, 1));
          return 0;
        }) == 0);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(is_consecutive(lines));
  CHECK(lines.back().at("t") == "end");
  CHECK(lines.back().at("allocs") == 21);
  const std::uint64_t lost = lines.back().at("dropped");
  CHECK(lost > 0);
  CHECK(of_type(lines, "alloc").size() == 21 - lost);
  CHECK(of_type(lines, "dropped").size() == 1);
}

TEST_CASE("a first line that did not fit is written before everything else once it does") {
  const ScratchFolder folder;
  CHECK(exit_code_of([&] {
          limit_file_size(10);
          std::string problem;
          events::Journal journal(logging_to(folder / "log"), problem);
          journal.describe(two_devices(), 0);
          journal.record(an_alloc(0x1000, 1));
          journal.end(nullptr);
          if (std::filesystem::file_size(folder / "log") != 0) {
            return 1;
          }
          limit_file_size(RLIM_INFINITY);
          journal.record(a_free(0x1000, 1));
          return 0;
        }) == 0);
  const std::vector<json> lines = log_lines(folder / "log");
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].at("t") == "meta");
  CHECK(lines[0].at("devices").size() == 2);
  CHECK(lines[1].at("t") == "dropped");
  CHECK(lines[2].at("t") == "free");
  CHECK(lines[3].at("t") == "end");
  CHECK(lines[3].at("dropped") == 1);
  CHECK(is_consecutive(lines));
}

TEST_CASE("the end counts a record after it that did not fit") {
  const ScratchFolder folder;
  CHECK(exit_code_of([&] {
          std::string problem;
          events::Journal journal(logging_to(folder / "log"), problem);
          journal.describe(two_devices(), 0);
          journal.record(an_alloc(0x1000, 5'000'000'000));
          journal.end(nullptr);
          limit_file_size(std::filesystem::file_size(folder / "log"));
          journal.record(a_free(0x1000, 5'000'000'000));
          return 0;
        }) == 0);
  const std::vector<json> lines = log_lines(folder / "log");
  REQUIRE(lines.size() == 3);
  CHECK(lines[2].at("t") == "end");
  CHECK(lines[2].at("dropped") == 1);
  CHECK(lines[2].at("live").at(0).at("bytes") == 0);
  CHECK(is_consecutive(lines));
}

TEST_CASE("a program that closes every descriptor keeps its own files clean and its log whole") {
  const ScratchFolder folder;
  const std::string mine = folder / "mine";
  CHECK(exit_code_of([&] {
          std::string problem;
          events::Journal journal(logging_to(folder / "log"), problem);
          journal.describe(two_devices(), 0);
          close_range(3, ~0u, 0);
          for (int i = 0; i < 64; ++i) {  // one of these has the number that the log had
            if (open(mine.c_str(), O_RDWR | O_CREAT, 0600) < 0) {
              return 1;
            }
          }
          journal.record(an_alloc(0x1000, 1));
          journal.end(nullptr);
          return 0;
        }) == 0);
  CHECK(text_of(mine).empty());
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(lines.size() == 3);
  CHECK(is_consecutive(lines));
}
