// Which process claims which file of one log setting.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "catch.h"
#include "events/log_file.h"
#include "events/process_tree.h"
#include "unit/events/child_process.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"

using namespace ration;
using namespace ration::test;

namespace {

constexpr std::int64_t kPid = 4242;

std::string line_of(const std::string &tree) {
  return R"({"t":"meta","schema":"ration.events/1","tree":")" + tree + "\"}\n";
}

// Leaves the log of a process that is dead by now.
void leave(const std::string &path, const std::string &tree) {
  REQUIRE(exit_code_of([&] {
            events::LogFile file;
            std::string problem;
            return file.claim(path, tree, 1, problem) && file.write(line_of(tree), 0, ration::now_ns()) ? 0 : 1;
          }) == 0);
}

std::string claimed(events::LogFile &file, const std::string &path, const std::string &tree) {
  std::string problem;
  REQUIRE(file.claim(path, tree, kPid, problem));
  CHECK(file.is_open());
  return file.path();
}

}  // namespace

TEST_CASE("a log of an earlier run is overwritten") {
  const ScratchFolder folder;
  leave(folder / "log", "1-1");
  events::LogFile file;
  CHECK(claimed(file, folder / "log", "2-2") == folder / "log");
  CHECK(text_of(folder / "log").empty());
}

TEST_CASE("a long log of an earlier run is emptied") {
  const ScratchFolder folder;
  std::ofstream(folder / "log") << line_of("1-1") << std::string(200'000, 'x');
  events::LogFile file;
  CHECK(claimed(file, folder / "log", "2-2") == folder / "log");
  CHECK(text_of(folder / "log").empty());
}

TEST_CASE("a second process of one tree writes a file beside that of the first, which is dead") {
  const ScratchFolder folder;
  leave(folder / "log", "1-1");
  events::LogFile file;
  CHECK(claimed(file, folder / "log", "1-1") == folder / "log.4242");
  CHECK(text_of(folder / "log") == line_of("1-1"));
}

TEST_CASE("a second process with the same process ID writes a third file") {
  const ScratchFolder folder;
  leave(folder / "log", "1-1");
  leave(folder / "log.4242", "1-1");
  events::LogFile file;
  CHECK(claimed(file, folder / "log", "1-1") == folder / "log.4242.2");
}

TEST_CASE("the log of a living process of any run is not taken") {
  const ScratchFolder folder;
  events::LogFile first;
  events::LogFile second;
  CHECK(claimed(first, folder / "log", "1-1") == folder / "log");
  CHECK(claimed(second, folder / "log", "2-2") == folder / "log.4242");
}

TEST_CASE("text that replaces a longer tail leaves nothing of it") {
  const ScratchFolder folder;
  events::LogFile file;
  claimed(file, folder / "log", "1-1");
  REQUIRE(file.write("line\na long tail\n", 12, ration::now_ns()));
  REQUIRE(file.write("tail\n", 5, ration::now_ns()));
  CHECK(text_of(folder / "log") == "line\ntail\n");
  REQUIRE(file.write("more\nend\n", 4, ration::now_ns()));
  REQUIRE(file.write("last\n", 0, ration::now_ns()));
  CHECK(text_of(folder / "log") == "line\nmore\nlast\n");
}

TEST_CASE("processes that inherited one mark from a common ancestor form one tree, others do not") {
  const ScratchFolder folder;
  const std::vector<std::pair<std::string, std::string>> marks = {{"UNIT_MARK", "here"},
                                                                  {"UNIT_RESULT", folder / "trees"}};
  const auto child = [&] {
    return exit_code_of([&]() -> int {
      become_test("child: prints its tree and those of its children", marks);
      return 1;
    });
  };
  REQUIRE(child() == 0);
  REQUIRE(child() == 0);
  std::ifstream file(folder / "trees");
  std::vector<std::string> trees;
  for (std::string line; std::getline(file, line);) {
    trees.push_back(line);
  }
  REQUIRE(trees.size() == 6);
  CHECK(trees[0] == trees[1]);
  CHECK(trees[0] == trees[2]);
  CHECK(trees[3] == trees[4]);
  CHECK(trees[3] == trees[5]);
  CHECK(trees[0] != trees[3]);
  CHECK(trees[0].find('-') != std::string::npos);
  CHECK(trees[0] != events::process_tree({"UNIT_MARK=here"}));
}

TEST_CASE("a log that its owner removes while it is claimed is claimed again") {
  const ScratchFolder folder;
  const std::string path = folder / "run.jsonl";
  std::atomic<bool> is_over{false};
  constexpr int kMostDuringAClaim = 50;  // half of what a claim tolerates before it takes a file with another path
  std::atomic<int> removed{0};
  std::atomic<int> removed_before{0};  // the claim that is under way
  std::thread owner([&] {              // as `ration run` does with a log that it has compressed
    while (!is_over) {
      const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      struct stat opened {};
      struct stat there {};
      if (file >= 0 && fcntl(file, F_OFD_SETLK, &lock) == 0 && fstat(file, &opened) == 0 &&
          stat(path.c_str(), &there) == 0 && there.st_ino == opened.st_ino &&
          removed - removed_before < kMostDuringAClaim) {
        removed += unlink(path.c_str()) == 0 ? 1 : 0;
      }
      close(file);
    }
  });
  int there = 0;
  int claimed = 0;
  for (; claimed < 300 || (removed < 100 && claimed < 100'000); ++claimed) {
    events::LogFile file;
    std::string problem;
    removed_before = removed.load();
    there += file.claim(path, std::to_string(claimed), 1, problem) && std::filesystem::exists(file.path()) ? 1 : 0;
    events::close_inherited_log();  // nothing else closes it
  }
  is_over = true;
  owner.join();
  CHECK(there == claimed);
  CHECK(removed >= 100);
}

TEST_CASE("child: prints its tree and those of its children", "[.]") {
  const auto tell = [] {
    std::ofstream(getenv("UNIT_RESULT"), std::ios::app) << events::process_tree({"UNIT_MARK=here"}) << "\n";
    return 0;
  };
  tell();
  REQUIRE(exit_code_of(tell) == 0);
  REQUIRE(exit_code_of([]() -> int {
            become_test("child: prints its tree", {});
            return 1;
          }) == 0);
}

TEST_CASE("child: prints its tree", "[.]") {
  std::ofstream(getenv("UNIT_RESULT"), std::ios::app) << events::process_tree({"UNIT_MARK=here"}) << "\n";
}

TEST_CASE("a process whose parents have no mark is a tree of its own") {
  CHECK(events::process_tree({"UNIT_MARK_OF_NOBODY=1"}).substr(0, 20).find(std::to_string(getpid()) + "-") == 0);
}

TEST_CASE("a mark is a whole variable, not the start of one") {
  const ScratchFolder folder;
  REQUIRE(exit_code_of([&]() -> int {
            become_test("child: prints its tree and those of its children",
                        {{"UNIT_MARK", "here-and-there"}, {"UNIT_RESULT", folder / "trees"}});
            return 1;
          }) == 0);
  std::ifstream file(folder / "trees");
  std::string first;
  std::string forked;
  std::string started;
  REQUIRE((file >> first >> forked >> started));
  CHECK(first == forked);  // a forked child stays in its parent's known tree
  CHECK(first != started);
}
