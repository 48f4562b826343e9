// What is left of the private folder of `ration run`.
#include "cli/run/temporary_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "catch.h"
#include "unit/events/scratch_folder.h"

using namespace ration;

namespace {

// $TMPDIR, for one test.
class TemporaryParent {
 public:
  TemporaryParent() { setenv("TMPDIR", folder_.path().c_str(), 1); }
  ~TemporaryParent() { unsetenv("TMPDIR"); }
  TemporaryParent(const TemporaryParent &) = delete;
  TemporaryParent &operator=(const TemporaryParent &) = delete;

  std::string operator/(const std::string &name) const { return folder_.path() + "/" + name; }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder_.path())) {
      names.insert(entry.path().string());
    }
    return names;
  }

 private:
  const test::ScratchFolder folder_;
};

// A process that is killed with a folder of its own, which has a file.
void leave_a_folder() {
  const pid_t process = fork();
  if (process == 0) {
    const cli::TemporaryFolder folder;
    std::ofstream(folder.path() + "/file") << "left";
    _exit(folder.path().empty() ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  REQUIRE(status == 0);
}

}  // namespace

TEST_CASE("a folder is removed with its owner") {
  const TemporaryParent parent;
  {
    const cli::TemporaryFolder folder;
    CHECK(parent.names() == std::set<std::string>{folder.path()});
    std::ofstream(folder.path() + "/file") << "text";
  }
  CHECK(parent.names().empty());
}

TEST_CASE("the folder of a process that was killed is removed by the next one, that of a living one is not") {
  const TemporaryParent parent;
  const cli::TemporaryFolder living;
  leave_a_folder();
  CHECK(parent.names().size() == 2);
  const cli::TemporaryFolder next;
  CHECK(parent.names() == std::set<std::string>{living.path(), next.path()});
}

TEST_CASE("what is no such folder stays") {
  const TemporaryParent parent;
  std::filesystem::create_directories(parent / "ration-abcdef");  // whose owner is not known to have ended
  std::filesystem::create_directories(parent / "ration-abcdefg");
  std::ofstream(parent / "ration-abcdefg/.alive") << "";
  std::ofstream(parent / "ration-abcdeh") << "";
  std::filesystem::create_directory_symlink(parent / "ration-abcdefg", parent / "ration-abcdei");
  const std::set<std::string> before = parent.names();
  { const cli::TemporaryFolder folder; }
  CHECK(parent.names() == before);
}
