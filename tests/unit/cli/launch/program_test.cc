#include "cli/launch/program.h"

#include <linux/capability.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "catch.h"
#include "cli/run/temporary_folder.h"
#include "elf_image.h"

using namespace ration::cli;

namespace {

const std::string kGlibc = "/lib64/ld-linux-x86-64.so.2";

struct Folder {
  TemporaryFolder folder;
  std::string at(const std::string &name) const { return folder.path() + "/" + name; }
  std::string write(const std::string &name, const std::string &bytes, mode_t mode = 0755) const {
    return write_file(at(name), bytes, mode);
  }
};

}  // namespace

TEST_CASE("an ordinary program has no obstacle, and its needed libraries are read") {
  const Folder folder;
  ElfImage image{kGlibc, {"libasan.so.8", "libc.so.6"}, ""};
  const Program program = inspect_program(folder.write("plain", image.bytes()), "");
  CHECK(program.exit_status == 0);
  CHECK(program.obstacle == Obstacle::kNone);
  CHECK(program.elf.interpreter == kGlibc);
  CHECK(program.elf.needed == std::vector<std::string>{"libasan.so.8", "libc.so.6"});
  CHECK_FALSE(program.for_shell);
}

TEST_CASE("an obstacle is recognised from the ELF headers") {
  const Folder folder;
  struct Row {
    const char *name;
    ElfImage image;
    Obstacle obstacle;
  };
  ElfImage thirty_two{kGlibc, {}, ""};
  thirty_two.word_class = sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64;
  ElfImage other_machine{kGlibc, {}, ""};
  other_machine.machine = EM_PPC64;
  const Row rows[] = {
      {"static", {"", {}, ""}, Obstacle::kStatic},
      {"musl", {"/lib/ld-musl-x86_64.so.1", {}, ""}, Obstacle::kMusl},
      {"musl_arm", {"/lib/ld-musl-aarch64.so.1", {}, ""}, Obstacle::kMusl},
      {"nix", {"/nix/store/abc-glibc/lib/ld-linux-x86-64.so.2", {}, ""}, Obstacle::kNone},
      {"loader", {"", {}, "ld-linux-x86-64.so.2"}, Obstacle::kNone},
      {"thirty_two", thirty_two, Obstacle::kForeign},
      {"other_machine", other_machine, Obstacle::kForeign},
  };
  for (const Row &row : rows) {
    INFO(row.name);
    const Program program = inspect_program(folder.write(row.name, row.image.bytes()), "");
    CHECK(program.exit_status == 0);
    CHECK(program.obstacle == row.obstacle);
    CHECK(program.reason.empty() == (row.obstacle == Obstacle::kNone));
  }
}

TEST_CASE("a truncated or corrupted ELF file is never read out of bounds") {
  const Folder folder;
  const std::string whole = ElfImage{kGlibc, {"libasan.so.8"}, "x"}.bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    read_elf(folder.write("cut", whole.substr(0, length)));
  }
  int read = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string bytes = whole;
      bytes[i] = value;
      read += read_elf(folder.write("flipped", bytes)).is_elf ? 1 : 0;
    }
  }
  CHECK(read > 0);
  CHECK(read < static_cast<int>(whole.size() * 3));  // without the magic it is not ELF
}

TEST_CASE("a command is searched for as execvp does") {
  const Folder folder;
  const std::string elf = ElfImage{kGlibc, {}, ""}.bytes();
  mkdir(folder.at("one").c_str(), 0755);
  mkdir(folder.at("two").c_str(), 0755);
  mkdir(folder.at("one/folder").c_str(), 0755);
  folder.write("two/tool", elf);
  folder.write("one/closed", elf, 0644);
  folder.write("two/closed", elf);
  folder.write("one/only_closed", elf, 0644);
  const std::string path = folder.at("missing") + ":" + folder.at("one") + ":" + folder.at("two");

  CHECK(inspect_program("tool", path).path == folder.at("two/tool"));
  CHECK(inspect_program("closed", path).path == folder.at("two/closed"));
  CHECK(inspect_program("only_closed", path).exit_status == 126);
  CHECK(inspect_program("folder", path).exit_status == 126);
  CHECK(inspect_program("nothing", path).exit_status == 127);
  CHECK(inspect_program("nothing", path).reason == "nothing: not found in PATH");
  CHECK(inspect_program(folder.at("one"), path).exit_status == 126);
  CHECK(inspect_program(folder.at("one/closed"), path).exit_status == 126);
  CHECK(inspect_program(folder.at("nothing"), path).exit_status == 127);
  CHECK(inspect_program(folder.at("two/tool/below"), path).exit_status == 127);
  CHECK(inspect_program("sh", "").exit_status == 0);  // no PATH: the C library's own
}

TEST_CASE("an empty item of PATH means the current folder") {
  const Folder folder;
  folder.write("tool", ElfImage{kGlibc, {}, ""}.bytes());
  char before[4096];
  REQUIRE(getcwd(before, sizeof(before)) != nullptr);
  REQUIRE(chdir(folder.folder.path().c_str()) == 0);
  CHECK(inspect_program("tool", "/nowhere:").path == "./tool");
  CHECK(inspect_program("tool", ":/nowhere").path == "./tool");
  CHECK(inspect_program("tool", "/nowhere").exit_status == 127);
  REQUIRE(chdir(before) == 0);
}

TEST_CASE("a script has the obstacles of its interpreter") {
  const Folder folder;
  const std::string still = folder.write("static", ElfImage{"", {}, ""}.bytes());
  const std::string asan = folder.write("asan", ElfImage{kGlibc, {"libasan.so.8"}, ""}.bytes());
  const std::string env = folder.write("env", ElfImage{kGlibc, {}, ""}.bytes());
  const std::string path = folder.folder.path();

  CHECK(inspect_program(folder.write("a", "#!" + still + "\n"), path).obstacle == Obstacle::kStatic);
  CHECK(inspect_program(folder.write("b", "#! \t" + still + " -x \n"), path).obstacle == Obstacle::kStatic);
  CHECK(inspect_program(folder.write("c", "#!" + still), path).obstacle == Obstacle::kStatic);
  CHECK(inspect_program(folder.write("d", "#!" + folder.at("a") + "\n"), path).obstacle == Obstacle::kStatic);
  CHECK(inspect_program(folder.write("e", "#!" + env + " static\n"), path).obstacle == Obstacle::kStatic);
  CHECK(inspect_program(folder.write("f", "#!" + env + " -S A=1 static -u\n"), path).obstacle == Obstacle::kStatic);
  CHECK(inspect_program(folder.write("g", "#!" + env + " a\n"), path).obstacle == Obstacle::kStatic);
  CHECK(inspect_program(folder.write("h", "#!" + env + " nothing\n"), path).obstacle == Obstacle::kNone);
  const Program needing = inspect_program(folder.write("i", "#!" + env + " asan\n"), path);
  CHECK(needing.elf.needed == std::vector<std::string>{"libasan.so.8"});
  CHECK(needing.runs == folder.at("asan"));
  CHECK(needing.path == folder.at("i"));
  CHECK(inspect_program(folder.write("j", "#!/no/such/thing\n"), path).exit_status == 127);
  CHECK(inspect_program(folder.at("j"), path).reason.find("/no/such/thing") != std::string::npos);
  CHECK(inspect_program(folder.write("k", "#!" + folder.at("k") + "\n"), path).exit_status == 0);  // execve: ELOOP
}

TEST_CASE("a file that is neither ELF nor a script is run by the shell") {
  const Folder folder;
  for (const char *text : {"exit 3\n", "", "#!", "#!\n", "#! \n"}) {
    INFO(text);
    const Program program = inspect_program(folder.write("text", text), "");
    CHECK(program.exit_status == 0);
    CHECK(program.for_shell);
    CHECK(program.runs == "/bin/sh");
  }
}

TEST_CASE("the command of env follows its options and assignments") {
  using Words = std::vector<std::string>;
  CHECK(command_of_env("python3") == Words{"python3"});
  CHECK(command_of_env("-S python3 -u A=1") == Words{"python3", "-u", "A=1"});
  CHECK(command_of_env("-Spython3") == Words{"python3"});
  CHECK(command_of_env("-i -u HOME -C / A=1 B= python3 x") == Words{"python3", "x"});
  CHECK(command_of_env("").empty());
  CHECK(command_of_env("-u").empty());
  CHECK(command_of_env("A=1").empty());
}

TEST_CASE("only a program that gains privileges is an obstacle") {
  const Folder folder;
  const std::string elf = ElfImage{kGlibc, {}, ""}.bytes();
  // setuid to our own user and group gains nothing.
  CHECK(inspect_program(folder.write("own", elf, 06755), "").obstacle == Obstacle::kNone);
  if (getuid() != 0) {
    WARN("only root can create a file of another user; not tested");
    return;
  }
  const auto owned = [&](const char *name, uid_t user, gid_t group, mode_t mode) {
    const std::string path = folder.write(name, elf);
    REQUIRE(chown(path.c_str(), user, group) == 0);
    REQUIRE(chmod(path.c_str(), mode) == 0);
    return inspect_program(path, "").obstacle;
  };
  CHECK(owned("setuid", 65534, 0, 04755) == Obstacle::kSecure);
  CHECK(owned("setgid", 0, 65534, 02755) == Obstacle::kSecure);
  CHECK(owned("locked", 0, 65534, 02745) == Obstacle::kNone);
  CHECK(owned("others", 65534, 65534, 0755) == Obstacle::kNone);
}

TEST_CASE("file capabilities are an obstacle for every user but root") {
  if (getuid() != 0) {
    WARN("only root can give capabilities to a file; not tested");
    return;
  }
  const Folder folder;
  const std::string path = folder.write("capable", ElfImage{kGlibc, {}, ""}.bytes());
  REQUIRE(chmod(folder.folder.path().c_str(), 0755) == 0);
  vfs_cap_data caps{};
  caps.magic_etc = VFS_CAP_REVISION_2;
  caps.data[0].permitted = 1u << CAP_NET_RAW;
  if (setxattr(path.c_str(), "security.capability", &caps, sizeof(caps), 0) != 0) {
    WARN("this file system takes no capabilities; not tested");
    return;
  }
  CHECK(inspect_program(path, "").obstacle == Obstacle::kNone);
  const pid_t child = fork();
  if (child == 0) {
    const bool changed = setgid(65534) == 0 && setuid(65534) == 0;
    _exit(!changed ? 2 : inspect_program(path, "").obstacle == Obstacle::kSecure ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}
