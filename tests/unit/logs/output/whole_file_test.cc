#include "logs/output/whole_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.h"
#include "unit/events/scratch_folder.h"

using namespace ration::logs;

namespace {

std::string text_of(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t files_in(const std::string &folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("a file is replaced with mode 0644, and no temporary file is left") {
  const ration::test::ScratchFolder folder;
  const std::string path = folder.path() + "/ration.prom";
  const mode_t before = umask(0077);
  CHECK(replace_file(path, std::string(100000, 'x')).empty());
  CHECK(replace_file(path, "new\n").empty());
  umask(before);
  CHECK(text_of(path) == "new\n");
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0644);
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("only a regular file is replaced") {
  const ration::test::ScratchFolder folder;
  const std::string link = folder.path() + "/link";
  const std::string target = folder.path() + "/target";
  std::ofstream(target) << "old";
  std::filesystem::create_symlink(target, link);
  CHECK_FALSE(replace_file(link, "new").empty());
  CHECK_FALSE(replace_file(folder.path(), "new").empty());
  CHECK(text_of(target) == "old");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(files_in(folder.path()) == 2);
}

TEST_CASE("a missing folder gives its error") {
  const ration::test::ScratchFolder folder;
  CHECK(replace_file(folder.path() + "/missing/ration.prom", "new") == "No such file or directory");
}
