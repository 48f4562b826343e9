// Files of every kind are read, or refused with a reason, without blocking.
#include "config/files/small_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "catch.h"
#include "unit/config/written_files.h"

using namespace ration::config;

namespace {

std::string wrong_with(const std::string &path, Trust trust = Trust::kAnybody) {
  const SmallFile file = read_small_file(path, trust);
  CHECK(file.there);
  CHECK((file.wrong.empty() || file.text.empty()));
  return file.wrong;
}

}  // namespace

TEST_CASE("a file is read whole, every byte of it") {
  const WrittenFiles files;
  const std::string bytes("a\0\xff\n", 4);
  CHECK(read_small_file(files.write("f", bytes), Trust::kOwnersOnly).text == bytes);
  CHECK(read_small_file(files.write("f", ""), Trust::kOwnersOnly).there);
  CHECK(read_small_file(files.write("f", std::string(1 << 20, 'x')), Trust::kAnybody).text.size() == 1 << 20);
}

TEST_CASE("a missing file is absent, and so is one whose parent is a file") {
  const WrittenFiles files;
  CHECK_FALSE(read_small_file(files.path("nothing"), Trust::kAnybody).there);
  CHECK_FALSE(read_small_file(files.path("no/folder"), Trust::kAnybody).there);
  CHECK_FALSE(read_small_file(files.write("f", "") + "/config.json", Trust::kAnybody).there);
}

TEST_CASE("a folder, a FIFO, a device, a socket and a loop of links are refused without blocking") {
  const WrittenFiles files;
  CHECK(wrong_with(files.path("system")) == "it is a folder");
  REQUIRE(mkfifo(files.path("fifo").c_str(), 0600) == 0);
  CHECK(wrong_with(files.path("fifo")) == "it is not a regular file");
  CHECK(wrong_with("/dev/zero") == "it is not a regular file");
  CHECK(wrong_with("/dev/null") == "it is not a regular file");
  REQUIRE(symlink(files.path("b").c_str(), files.path("a").c_str()) == 0);
  REQUIRE(symlink(files.path("a").c_str(), files.path("b").c_str()) == 0);
  CHECK(wrong_with(files.path("a")) == "Too many levels of symbolic links");
  CHECK(wrong_with(files.path(std::string(300, 'x'))) == "File name too long");
}

TEST_CASE("more than 1 MiB is refused, also from a file of size 0") {
  const WrittenFiles files;
  CHECK(wrong_with(files.write("f", std::string((1 << 20) + 1, 'x'))).find("it is larger than 1 MiB") == 0);
  REQUIRE(truncate(files.path("f").c_str(), off_t{1} << 40) == 0);
  CHECK(wrong_with(files.path("f")).find("it is larger than 1 MiB") == 0);
  CHECK(read_small_file("/proc/self/cmdline", Trust::kAnybody).text.find('\0') != std::string::npos);
}

TEST_CASE("the user's own file is refused if others may write to it; a named file is read") {
  const WrittenFiles files;
  const std::string path = files.write("f", "{}");
  for (const mode_t mode : {0664u, 0646u, 0666u, 0620u}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CHECK(wrong_with(path, Trust::kOwnersOnly) == "other users may write to it; run chmod go-w on it");
    CHECK(wrong_with(path, Trust::kAnybody).empty());
  }
  for (const mode_t mode : {0644u, 0600u, 0755u}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CHECK(wrong_with(path, Trust::kOwnersOnly).empty());
  }
}

TEST_CASE("the user's own file is refused if it belongs to another user") {
  if (geteuid() != 0) {
    WARN("only root can give files away: not checked");
    return;
  }
  const WrittenFiles files;
  const std::string path = files.write("f", "{}");
  REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
  CHECK(wrong_with(path, Trust::kOwnersOnly).find("it belongs to another user (12345)") == 0);
  CHECK(wrong_with(path, Trust::kAnybody).empty());
}

TEST_CASE("a folder lists its files that end in .json, sorted by bytes") {
  const WrittenFiles files;
  for (const char *name : {"b.json", "B.json", "10.json", "9.json", ".x.json", "a.JSON", "a.json.bak", ".json"}) {
    files.drop_in(name, "{}");
  }
  const Folder folder = list_json_files(files.path("system/conf.d"));
  CHECK(folder.wrong.empty());
  CHECK(folder.names == std::vector<std::string>{"10.json", "9.json", "B.json", "b.json"});
  CHECK(list_json_files(files.path("nothing")).wrong.empty());
  CHECK_FALSE(list_json_files(files.write("f", "")).wrong.empty());
  for (int i = 0; i < 300; ++i) {
    files.drop_in(std::to_string(i) + ".json", "{}");
  }
  CHECK(list_json_files(files.path("system/conf.d")).wrong == "more than 256 files of settings");
}

TEST_CASE("any file that must not be used puts the limit in doubt") {
  const WrittenFiles files;
  const auto limit = [](const Reading &reading) { return reading.settings.limit_on(device(0)).bytes; };
  CHECK(limit(files.read({"RATION_CONFIG=" + files.path("nothing")})) == kStrictest);
  CHECK(limit(files.read({"RATION_CONFIG=" + files.path("system")})) == kStrictest);
  files.user("{}");
  REQUIRE(chmod(files.path("user/ration/config.json").c_str(), 0666) == 0);
  CHECK(limit(files.read()) == kStrictest);
  files.user("{}");
  std::filesystem::create_directory(files.path("system/conf.d/x.json"));
  const Reading reading = files.read();
  CHECK(limit(reading) == kStrictest);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line.find(files.path("system/conf.d/x.json") + ": it is a folder; until it is corrected") ==
        0);
}
