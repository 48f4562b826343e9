// Blocks that one process shares and others open: who may, until when, and who is seen to have one open.
#include <sys/stat.h>
#include <unistd.h>

#include "exports.h"
#include "ledger/group_view.h"

using namespace multiproc;
using namespace ration::ledger;

namespace {

TEST_CASE("a token leads another process to the block, and its owner sees that it is open until it is not") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(3, block_at(512), export_nonce());
  CHECK_FALSE(is_open(*file, 3));
  const Shared<Meeting> meeting;
  Child child([&] {
    const auto lease = open_one(folder, token);
    expect(lease != nullptr, "the token opens nothing");
    const ExportedBlock wanted = block_at(512);
    expect(lease->block().offset == 512 && lease->block().bytes == 1000, "another block");
    expect(std::memcmp(lease->block().handle, wanted.handle, sizeof(wanted.handle)) == 0, "another handle");
    expect(lease->is_live(), "live");
    open(meeting->has_it, 1);
    wait_while(meeting->over, 0);
    expect(!lease->is_live(), "its owner said that it has ended");
  });
  wait_while(meeting->has_it, 0);
  CHECK(is_open(*file, 3));
  CHECK_FALSE(is_open(*file, 4));
  CHECK_FALSE(ExportFile::Look(*file).is_nobodys());
  file->end(3);
  CHECK(is_open(*file, 3));
  open(meeting->over, 1);
  CHECK(child.ended() == 0);
  CHECK_FALSE(is_open(*file, 3));
  CHECK(ExportFile::Look(*file).is_nobodys());
}

TEST_CASE("whoever is killed with a block open has it no more") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  const Shared<Meeting> meeting;
  Child child([&] { keep_open(folder, token, meeting->has_it, meeting->over); });
  wait_while(meeting->has_it, 0);
  CHECK(is_open(*file, 0));
  child.kill();
  CHECK_FALSE(is_open(*file, 0));
}

TEST_CASE("several can have a block open, and the last of them counts") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(4094, block_at(512), export_nonce());
  const Shared<Meeting> one, other;
  Child first([&] { keep_open(folder, token, one->has_it, one->over); });
  Child second([&] { keep_open(folder, token, other->has_it, other->over); });
  wait_while(one->has_it, 0);
  wait_while(other->has_it, 0);
  first.kill();
  CHECK(is_open(*file, 4094));
  open(other->over, 1);
  CHECK(second.ended() == 0);
  CHECK_FALSE(is_open(*file, 4094));
}

TEST_CASE("a token of what has ended, of another generation or of nobody's making opens nothing") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken first = file->publish(3, block_at(512), export_nonce());
  REQUIRE(open_one(folder, first) != nullptr);
  file->end(3);
  CHECK(open_one(folder, first) == nullptr);
  const ExportToken second = file->publish(3, block_at(2048), export_nonce());
  CHECK(open_one(folder, first) == nullptr);
  REQUIRE(open_one(folder, second) != nullptr);
  const auto altered = [&](auto change) {
    ExportToken token = second;
    change(token);
    return open_one(folder, token) == nullptr;
  };
  CHECK(altered([](ExportToken &token) { ++token.nonce[0]; }));
  CHECK(altered([](ExportToken &token) { ++token.nonce[1]; }));
  CHECK(altered([](ExportToken &token) { ++token.generation; }));
  CHECK(altered([](ExportToken &token) { ++token.record; }));
  CHECK(altered([](ExportToken &token) { token.record = 4095; }));
  CHECK(altered([](ExportToken &token) { token.record = UINT32_MAX; }));
  CHECK(altered([](ExportToken &token) { ++token.exporter; }));
  CHECK(altered([](ExportToken &token) { ++token.version; }));
  CHECK(altered([](ExportToken &token) { ++token.magic; }));
  file->end(3);
  ExportedBlock outside = block_at(512);
  outside.offset = outside.slab_bytes - 1;
  CHECK(open_one(folder, file->publish(3, outside, export_nonce())) == nullptr);
  CHECK_FALSE(is_open(*file, 3));  // none of these tries left anything
}

TEST_CASE("the blocks of a dead process open nothing, whoever its children are") {
  const Folder folder;
  const Shared<Meeting> meeting;
  const Shared<Gate> orphan_there;
  const Shared<Gate> orphan_over;
  Child exporter([&] {
    std::string problem;
    const auto file = ExportFile::make(folder.path(), problem);
    meeting->token = file->publish(7, block_at(512), export_nonce());
    if (fork() == 0) {
      open(*orphan_there, 1);
      wait_while(*orphan_over, 0);
      _exit(0);
    }
    wait_while(*orphan_there, 0);
    open(meeting->has_it, 1);
    wait_while(meeting->over, 0);
  });
  wait_while(meeting->has_it, 0);
  REQUIRE(open_one(folder, meeting->token) != nullptr);
  exporter.kill();
  CHECK(open_one(folder, meeting->token) == nullptr);
  open(*orphan_over, 1);
}

TEST_CASE("a child of a process that has a block open does not have it") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  const Shared<Meeting> meeting;
  const Shared<Gate> orphan_over;
  Child child([&] {
    const auto lease = open_one(folder, token);
    expect(lease != nullptr, "the token opens nothing");
    if (fork() == 0) {
      open(meeting->has_it, 1);
      wait_while(*orphan_over, 0);
      _exit(0);
    }
    wait_while(meeting->has_it, 0);
  });
  CHECK(child.ended() == 0);
  CHECK_FALSE(is_open(*file, 0));
  open(*orphan_over, 1);
}

TEST_CASE("whoever looks removes the file of a dead process, once nobody has anything of it open") {
  const Folder folder;
  const Shared<Meeting> exporting, importing;
  Child exporter([&] { export_and_stay(folder, *exporting); });
  wait_while(exporting->has_it, 0);
  Child importer([&] { keep_open(folder, exporting->token, importing->has_it, importing->over); });
  wait_while(importing->has_it, 0);
  std::string problem;
  const auto files = [&] {
    (void)look(folder.path(), problem);
    return names_in(folder.path()).size();
  };
  CHECK(files() == 1);
  exporter.kill();
  CHECK(files() == 1);
  importer.kill();
  CHECK(files() == 0);
}

TEST_CASE("a process that ends in order takes its file along, unless somebody has something of it open") {
  const Folder folder;
  const auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  {
    const auto lease = open_one(folder, token);
    REQUIRE(lease != nullptr);
    file->remove_if_unused();
    CHECK(names_in(folder.path()).size() == 1);
  }
  file->remove_if_unused();
  CHECK(names_in(folder.path()).empty());
  CHECK(is_open(*file, 0));  // nobody can tell any more
  CHECK(open_one(folder, token) == nullptr);
}

TEST_CASE("a file that is not what it should be opens nothing") {
  const Folder folder;
  auto file = make_file(folder);
  const ExportToken token = file->publish(0, block_at(512), export_nonce());
  const std::string path = file->path();
  SECTION("others may write to it") {
    REQUIRE(chmod(path.c_str(), 0622) == 0);
  }
  SECTION("it was cut short") {
    REQUIRE(truncate(path.c_str(), 4096) == 0);
  }
  SECTION("it is a link") {
    REQUIRE(rename(path.c_str(), (path + "x").c_str()) == 0);
    REQUIRE(symlink((path + "x").c_str(), path.c_str()) == 0);
  }
  std::string problem;
  CHECK(ExportLease::take(folder.path(), token, problem) == nullptr);
  CHECK_FALSE(problem.empty());
}

TEST_CASE("no folder, no file: an exporter is told why") {
  std::string problem;
  CHECK(ExportFile::make("", problem) == nullptr);
  CHECK_FALSE(problem.empty());
  CHECK(ExportFile::make("/proc/self/none", problem) == nullptr);
  CHECK_FALSE(problem.empty());
}

}  // namespace
