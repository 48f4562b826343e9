#include "cli/launch/command_walk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "catch.h"

using namespace ration::cli;

namespace {

using Line = std::vector<std::string>;

const Library kLibrary{"/x/libration.so", "/x/libration-core.so", "/x/sim"};

CommandWalk walk(const Line &words) {
  const char *const own[] = {"LD_PRELOAD=/x/libration.so", "RATION_LIMIT=4GiB", "PATH=/usr/bin:/bin", nullptr};
  return walk_command(words, EnvironmentBlock(own), kLibrary);
}

std::string lost_by(const Line &words) {
  const CommandWalk found = walk(words);
  return found.loss ? found.loss->name : "";
}

Line changes_of(const Line &words) {
  Line sentences;
  for (const CommandWalk::Change &each : walk(words).changes) {
    sentences.push_back(said(each));
  }
  return sentences;
}

// What a line may lose; empty if it keeps the library, or certainly loses it.
std::string suspected_of(const Line &words) {
  const CommandWalk found = walk(words);
  const auto loss = loss_of_limit(found, kLibrary);
  return loss && !loss->is_certain ? loss->name + " " + loss->reason : "";
}

bool is_lost(const Line &words) {
  const auto loss = loss_of_limit(walk(words), kLibrary);
  return loss && loss->is_certain;
}

bool is_kept(const Line &words) {
  return !loss_of_limit(walk(words), kLibrary);
}

// A folder with scripts.
class Scripts {
 public:
  Scripts() { REQUIRE(mkdtemp(folder_.data()) != nullptr); }
  ~Scripts() { std::filesystem::remove_all(folder_); }
  Scripts(const Scripts &) = delete;
  Scripts &operator=(const Scripts &) = delete;

  std::string write(const std::string &text, const std::string &name = "script") const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    REQUIRE(chmod(path.c_str(), 0755) == 0);
    return path;
  }

 private:
  std::string folder_ = "/tmp/ration-walk-test-XXXXXX";
};

Line program_of(const Line &words) {
  return walk(words).stages.back().words;
}

}  // namespace

TEST_CASE("what looks for its program passes its environment on, and is not read") {
  const Scripts folder;
  const std::string pyenv = folder.write("#!/bin/bash\nunset LD_PRELOAD\n\"$(pyenv-which $2)\"\n", "pyenv");
  CHECK(
      is_kept({folder.write("#!/bin/sh\nprogram=${0##*/}\nexec " + pyenv + " exec \"$program\" \"$@\"\n", "python3")}));
  CHECK(walk({pyenv, "exec", "ls"}).is_open);
}

TEST_CASE("a command that clears the environment is known by its name, in any folder") {
  CHECK(lost_by({"sudo", "ls"}) == "sudo");
  CHECK(lost_by({"/usr/bin/ssh", "host", "ls"}) == "ssh");
  CHECK(lost_by({"srun", "ls"}) == "srun");
  CHECK(lost_by({"sudoku"}).empty());
  CHECK(walk({"doas", "ls"}).loss->remedy ==
        "put ration run after it: doas ... " + own_command() + " run OPTIONS -- COMMAND");
}

TEST_CASE("an inner run makes good what was lost before it, whatever options it has") {
  for (const Line &line :
       {Line{"env", "-u", "LD_PRELOAD", "ration", "run", "-q", "--", "ls"},
        Line{"env", "-u", "RATION_LIMIT", "ration", "run", "--wait", "5s", "--summary", "json", "ls"},
        Line{"sudo", "ration", "run", "--limit", "1GiB", "-v", "ls"}}) {
    CHECK(lost_by(line).empty());
    CHECK(walk(line).changes.empty());
    CHECK(program_of(line) == Line{"ls"});
  }
}

TEST_CASE("a setting that is unset and set again is none that is taken, and one that is replaced is told") {
  CHECK(walk({"env", "-u", "RATION_LIMIT", "RATION_LIMIT=4GiB", "ls"}).changes.empty());
  CHECK(walk({"env", "-u", "RATION_LIMIT", "env", "RATION_LIMIT=4GiB", "RATION_LOG=x", "ls"}).changes.empty());
  CHECK(changes_of({"env", "-u", "RATION_LIMIT", "ls"}) == Line{"env unsets RATION_LIMIT"});
  CHECK(changes_of({"env", "-i", "LD_PRELOAD=/x/libration.so", "ls"}) == Line{"env unsets RATION_LIMIT"});
  CHECK(changes_of({"env", "RATION_LIMIT=8GiB", "ls"}) == Line{"env sets RATION_LIMIT=8GiB, in place of 4GiB"});
  CHECK(changes_of({"env", "RATION_LIMIT=1GiB", "env", "RATION_LIMIT=2GiB", "ls"}) ==
        Line{"env sets RATION_LIMIT=2GiB, in place of 4GiB"});
}

TEST_CASE("a program of one's own that has the name of a launcher may be no such launcher") {
  for (const Line &line :
       {Line{"./env", "-i", "ls"}, Line{"./sudo", "ls"}, Line{"nice", "./env", "-u", "LD_PRELOAD", "ls"},
        Line{"./nice", "env", "-u", "LD_PRELOAD", "ls"}, Line{"srun", "ls"}}) {
    REQUIRE(walk(line).loss);
    CHECK_FALSE(walk(line).loss->is_certain);
  }
  for (const Line &line : {Line{"env", "-i", "ls"}, Line{"/usr/bin/env", "-i", "ls"}, Line{"nice", "sudo", "ls"}}) {
    REQUIRE(walk(line).loss);
    CHECK(walk(line).loss->is_certain);
  }
}

TEST_CASE("options are read abbreviated, and after those that do something else") {
  for (const Line &line : {Line{"env", "--uns=LD_PRELOAD", "ls"}, Line{"env", "--unset", "LD_PRELOAD", "ls"},
                           Line{"env", "--ignore-e", "ls"}, Line{"env", "-C", "/", "-u", "LD_PRELOAD", "ls"},
                           Line{"env", "--chd=/", "-i", "./x"}, Line{"env", "-S", "-C / -u LD_PRELOAD ls"}}) {
    CHECK(lost_by(line) == "env");
  }
  CHECK(program_of({"nice", "--adj", "5", "ls"}) == Line{"ls"});
  CHECK(program_of({"env", "-C", "/", "ls"}) == Line{"ls"});
  CHECK(program_of({"env", "-C", "/usr/bin", "./ls"}) == Line{"/usr/bin/./ls"});
  CHECK(lost_by({"setpriv", "--reset", "ls"}) == "setpriv");
}

TEST_CASE("a line that switches Ration off loses the limit") {
  for (const Line &line : {Line{"env", "RATION_DISABLE=1", "ls"}, Line{"sh", "-c", "RATION_DISABLE=1 ls"}}) {
    const auto loss = loss_of_limit(walk(line), kLibrary);
    REQUIRE(loss);
    CHECK(loss->reason == "starts a program with RATION_DISABLE=1");
  }
  CHECK_FALSE(loss_of_limit(walk({"env", "RATION_DISABLE=0", "ls"}), kLibrary));
}

TEST_CASE("what is told to pass LD_PRELOAD on may do so") {
  REQUIRE(walk({"docker", "run", "-v", "/x:/x", "-e", "LD_PRELOAD", "image"}).loss);
  CHECK_FALSE(walk({"docker", "run", "-v", "/x:/x", "-e", "LD_PRELOAD", "image"}).loss->is_certain);
  CHECK_FALSE(walk({"podman", "run", "--env=LD_PRELOAD=/x/libration.so", "image"}).loss->is_certain);
  CHECK(walk({"docker", "run", "-e", "HOME", "image"}).loss->is_certain);
  if (geteuid() == 0) {
    CHECK(lost_by({"su", "-", "user", "-c", "ls"}) == "su");
    CHECK(lost_by({"su", "-", "-w", "HOME,LD_PRELOAD", "user", "-c", "ls"}).empty());
    CHECK(lost_by({"su", "-l", "user", "--whitelist=LD_PRELOAD", "--comm", "ls"}).empty());
  }
}

TEST_CASE("some clear it only with an option, which must be theirs") {
  CHECK(lost_by({"env", "-i", "A=1", "ls"}) == "env");
  CHECK(lost_by({"env", "-u", "LD_PRELOAD", "ls"}) == "env");
  CHECK(lost_by({"env", "-u", "HOME", "-u", "LD_PRELOAD", "ls"}) == "env");
  CHECK(lost_by({"env", "-uLD_PRELOAD", "ls"}) == "env");
  CHECK(lost_by({"env", "--unset=LD_PRELOAD", "ls"}) == "env");
  CHECK(lost_by({"env", "LD_PRELOAD=", "ls"}) == "env");
  CHECK(lost_by({"env", "LD_PRELOAD=/x/other.so", "ls"}) == "env");
  CHECK(lost_by({"env", "-S", "-i ls"}) == "env");
  CHECK(lost_by({"env", "-S-i ls"}) == "env");
  CHECK(lost_by({"env", "-iu", "HOME", "ls"}) == "env");
  CHECK(program_of({"env", "-iu", "HOME", "ls"}) == Line{"ls"});
  CHECK(lost_by({"env", "-vuLD_PRELOAD", "ls"}) == "env");
  CHECK(lost_by({"env", "-uinvidia", "ls"}).empty());
  CHECK(lost_by({"env", "A=1", "grep", "-i", "x"}).empty());
  CHECK(lost_by({"env"}).empty());
  CHECK(lost_by({"docker", "run", "image"}) == "docker");
  CHECK(lost_by({"docker", "--log-level=debug", "exec", "c", "ls"}) == "docker");
  for (const Line &options :
       {Line{"--context", "x"}, Line{"-H", "tcp://h"}, Line{"-Htcp://h"}, Line{"-l", "debug"}, Line{"-c", "ctx"}}) {
    Line line = options;
    line.insert(line.begin(), "docker");
    line.emplace_back("run");
    CHECK(lost_by(line) == "docker");
    line.back() = "ps";
    CHECK(lost_by(line).empty());
  }
  CHECK(lost_by({"podman", "--log-level", "debug", "run", "image"}) == "podman");
  for (const Line &verbs : {Line{"container", "run"}, Line{"service", "create"}, Line{"stack", "deploy"},
                            Line{"pod", "start"}, Line{"play", "kube"}, Line{"kube", "play"}}) {
    CHECK(lost_by({"docker", verbs[0], verbs[1], "x"}) == "docker");
    CHECK(lost_by({"docker", verbs[0], "ls"}).empty());
  }
  CHECK(lost_by({"podman", "restart", "x"}) == "podman");
  CHECK(lost_by({"docker", "ps"}).empty());
  CHECK(lost_by({"runuser", "-l", "user"}) == "runuser");
  CHECK(lost_by({"setpriv", "--reset-env", "ls"}) == "setpriv");
  CHECK(lost_by({"setpriv", "--reuid", "5", "ls"}).empty());
  CHECK(lost_by({"systemd-run", "ls"}) == "systemd-run");
  CHECK(lost_by({"systemd-run", "--user", "--scope", "ls"}).empty());
  CHECK(lost_by({"chroot", "/srv", "ls"}) == "chroot");
  CHECK(lost_by({"chroot", "/", "ls"}).empty());
  CHECK(lost_by({"su", "-", "root", "-c", "ls"}) == "su");
}

TEST_CASE("ration run, or the library itself, makes it good") {
  CHECK(lost_by({"sudo", "-u", "x", "ration", "run", "--limit", "1GiB", "--", "ls"}).empty());
  CHECK(lost_by({"env", "-i", "/abs/ration", "run", "--limit", "1GiB", "--", "ls"}).empty());
  CHECK(lost_by({"env", "-i", "LD_PRELOAD=/x/libration.so", "RATION_LIMIT=1GiB", "ls"}).empty());
  CHECK(lost_by({"su", "nobody", "-c", "ration run --limit 1GiB ls"}).empty());
  CHECK(lost_by({"systemd-run", "ration", "run", "ls"}).empty());
  CHECK(lost_by({"ssh", "host", "ration run --limit 1GiB ls"}).empty());
  CHECK(lost_by({"docker", "run", "image", "ration", "run", "ls"}).empty());
  CHECK(lost_by({"chroot", "/srv", "ration", "run", "ls"}).empty());
  CHECK(lost_by({"systemd-run", "bash", "-c", "cd /x && ration run --limit 1GiB ./x"}).empty());
  CHECK(lost_by({"sudo", "sh", "-c", "cd /x; exec nice ration run ./x"}).empty());
  CHECK(lost_by({"env", "-i", "bash", "-c", "cd /x && ration run ./x"}).empty());
  CHECK(lost_by({"su", "-", "x", "-c", "cd /x && ration run ./x"}).empty());
  CHECK(lost_by({"sudo", "sh", "-c", "cd /x && echo ration runs"}) == "sudo");
  CHECK(walk({"sudo", "sh", "-c", "cd /x && ration run --limit 2GiB ./x"}).environment.value("RATION_LIMIT") == "2GiB");
  CHECK(lost_by({"ration", "run", "sudo", "ls"}) == "sudo");
  CHECK(walk({"env", "-i", "/abs/ration", "run", "--limit", "1GiB", "--", "ls"}).environment.value("RATION_LIMIT") ==
        "1GiB");
}

TEST_CASE("commands that only change how another one runs are looked through, to the program") {
  const Line wanted = {"./x", "-n", "5"};
  for (const Line &before :
       {Line{"nice", "-n", "5"}, Line{"nice", "-5"}, Line{"timeout", "-k", "1", "10m"}, Line{"env", "A=1"},
        Line{"setsid", "-w"}, Line{"taskset", "-c", "0-3"}, Line{"xargs", "-n", "1"}, Line{"strace", "-f", "-o", "out"},
        Line{"nohup"}, Line{"stdbuf", "-oL"}, Line{"ionice", "-c", "3"}, Line{"numactl", "-N", "0", "--membind=0"},
        Line{"ration", "run", "--"}, Line{"/lib64/ld-linux-x86-64.so.2", "--library-path", "/x"},
        Line{"sudo", "-u", "x", "A=1"}, Line{"chrt", "-f", "10"}, Line{"env", "-u", "HOME", "nice", "--"},
        Line{"sh", "-c", "\"$@\"", "sh"}, Line{"env", "-S", "A=1 nice"}}) {
    Line line = before;
    line.insert(line.end(), wanted.begin(), wanted.end());
    INFO(before.front() << " " << before.back());
    CHECK(program_of(line) == wanted);
  }
  CHECK(program_of({"nice", "-n"}) == Line{"nice", "-n"});
  CHECK(lost_by({"nice", "ls", "sudo"}).empty());
}

TEST_CASE("what hands its command to a server loses the environment") {
  CHECK(lost_by({"at", "now", "-f", "script"}) == "at");
  CHECK(lost_by({"batch"}) == "batch");
  CHECK(lost_by({"systemctl", "--user", "restart", "x"}) == "systemctl");
  CHECK(lost_by({"systemctl", "status", "x"}).empty());
  CHECK(lost_by({"systemctl", "-H", "host", "start", "x"}) == "systemctl");
  CHECK(lost_by({"systemctl", "--machine", "m", "start", "x"}) == "systemctl");
  CHECK(lost_by({"supervisorctl", "-c", "/etc/s.conf", "start", "x"}) == "supervisorctl");
  CHECK(lost_by({"supervisorctl", "-c", "start", "status"}).empty());
  CHECK(lost_by({"zellij", "run", "--", "./x"}) == "zellij");
  CHECK(lost_by({"zellij", "-s", "work", "run", "--", "./x"}) == "zellij");
  CHECK(lost_by({"screen", "-r", "work", "-X", "screen", "./x"}) == "screen");
  CHECK(program_of({"screen", "-d", "-m", "./x"}) == Line{"./x"});
  CHECK(lost_by({"screen", "-S", "work", "-X", "screen", "./x"}) == "screen");
  CHECK(lost_by({"screen", "-X", "screen", "ration", "run", "./x"}).empty());
  CHECK(program_of({"screen", "-dmS", "work", "./x", "-n"}) == Line{"./x", "-n"});
  CHECK(lost_by({"systemd-run", "-E", "LD_PRELOAD", "-E", "A=1", "./x"}).empty());
  CHECK(lost_by({"systemd-run", "--setenv=LD_PRELOAD=/x/libration.so", "./x"}).empty());
  CHECK(lost_by({"systemd-run", "--setenv=A=1", "./x"}) == "systemd-run");
  CHECK(lost_by({"flux", "submit", "./x"}) == "flux");
  CHECK(lost_by({"ray", "start", "--head"}).empty());
}

TEST_CASE("tmux's command is looked through where no server runs") {
  const Line alone = {"tmux", "-S", "/nowhere/socket"};
  const auto with = [&](const Line &more) {
    Line line = alone;
    line.insert(line.end(), more.begin(), more.end());
    return line;
  };
  CHECK(lost_by(alone).empty());
  CHECK(program_of(with({"ls"})).front() == "tmux");
  CHECK(program_of(with({"new", "-d", "-s", "work", "./x", "-n"})) == Line{"./x", "-n"});
  CHECK(program_of(with({"new-session", "-ds", "work", "exec ./x -n"})) == Line{"./x", "-n"});
  CHECK(program_of(with({"new", "-d", "./x", ";", "split-window"})) == Line{"./x"});
  CHECK(program_of(with({"attach", ";", "new-window", "./x"})) == Line{"./x"});
  CHECK(program_of(with({"set", "-g", "x;", "neww", "./x;", "splitw"})) == Line{"./x"});
  CHECK(program_of(with({"new", ";", "ls"})).front() == "tmux");
  CHECK(lost_by(with({"new", "-d", "sudo ls"})) == "sudo");
}

TEST_CASE("what loses the environment in a shell's longer line is named") {
  for (const char *line : {"(sudo -u x $PROGRAM)", "if sudo ./x; then ls; fi", "ls; sudo ./x", "echo $(sudo ./x)",
                           "for each in *; do sudo ./x; done", "ls | sudo sh"}) {
    INFO(line);
    CHECK(walk({"bash", "-c", line}).unchecked == "bash, whose command line loses LD_PRELOAD by sudo,");
    CHECK(suspected_of({"bash", "-c", line}) == "bash has a command line that loses LD_PRELOAD by sudo");
  }
  for (const char *line : {"cd /x && sudo ./x", "echo ./x | sudo sh", "exec sudo ./x >log 2>&1", "sudo ./x \"$@\" &",
                           "A=1 sudo ./x *", "sudo ./x; sudo ./y"}) {
    INFO(line);
    CHECK(lost_by({"bash", "-c", line}) == "sudo");
  }
  for (const char *line : {"ls 'a; sudo ./x' | cat", "./x \"; sudo\" | cat", "ls; ration run -- ./x"}) {
    INFO(line);
    CHECK(walk({"bash", "-c", line}).unchecked == "bash");
  }
}

TEST_CASE("a shell's line that is one command is looked through, any other is not checked") {
  CHECK(program_of({"sh", "-c", "exec ./x 'a b' \"c d\" e\\ f"}) == Line{"./x", "a b", "c d", "e f"});
  CHECK(program_of({"bash", "-ec", "A=1 ./x"}) == Line{"./x"});
  CHECK(program_of({"sh", "-c", "cd /usr/bin && ./ls -l # as a test"}) == Line{"/usr/bin/./ls", "-l"});
  CHECK(program_of({"sh", "-c", "set -e; echo a; ./x *.c >out 2>&1 </dev/null"}) == Line{"./x", "*.c"});
  CHECK(lost_by({"bash", "-c", "LD_PRELOAD= ./x"}) == "bash");
  CHECK(walk({"bash", "-c", "./x"}).unchecked.empty());
  for (const char *line : {"cd /x && ./x", "./x | cat", "\"$@\"", "'./x", "export A=1", "A=1", "if ls; then ls; fi"}) {
    INFO(line);
    CHECK(walk({"bash", "-c", line}).unchecked == "bash");
  }
  CHECK(walk({"bash", "/nowhere/script"}).unchecked == "the script /nowhere/script");
}

TEST_CASE("a line that certainly takes the library away from every program is known") {
  for (const char *line : {"unset LD_PRELOAD; ls",
                           "export -n LD_PRELOAD\nls",
                           "env -u LD_PRELOAD ls; echo",
                           "LD_PRELOAD=; exec ls",
                           "unset LD_PRELOAD A && ls && ls -l",
                           "cd / && unset LD_PRELOAD && ls $A",
                           "unset LD_PRELOAD || true; ls",
                           "env -u LD_PRELOAD ls | env -i ls",
                           "exec -c ls",
                           "unset LD_PRELOAD; ls & ls",
                           "unset LD_PRELOAD; LD_PRELOAD=/x/libration.so; ls",
                           "command unset LD_PRELOAD; ls; exit; ration run ls",
                           "export RATION_DISABLE=1; ls",
                           "export -n LD_PRELOAD; unset LD_PRELOAD; export LD_PRELOAD; ls",
                           "RATION_DISABLE=1; export RATION_DISABLE; ls",
                           "unset RATION_LIMIT; ls",
                           "sh -c 'unset LD_PRELOAD; ls'",
                           "set -- ls; unset LD_PRELOAD; ls \"$@\"",
                           "unset LD_PRELOAD; env LD_PRELOAD=$LD_PRELOAD ls",
                           "eval 'unset LD_PRELOAD'; ls",
                           "echo $LD_PRELOAD; eval 'unset LD_PRELOAD'; ls",
                           "A='env -i ls'; eval \"$A\"",
                           "A='env -i'; $A ls",
                           "nice ${A:-env -i} ls",
                           "set -- env -i; \"$@\" ls",
                           "set -a; RATION_DISABLE=1; ls",
                           "flock /tmp -c 'env -i ls'",
                           "A=/; sh -c \"cd $A && env -i ls\"",
                           "LD_PRELOAD=/x/other.so ls"}) {
    INFO(line);
    CHECK(is_lost({"bash", "-c", line}));
  }
  CHECK(is_lost({"sh", "-c", "unset LD_PRELOAD; exec \"$@\"", "sh", "ls"}));
  CHECK(is_lost({"strace", "-E", "LD_PRELOAD", "ls"}));
  CHECK(is_lost({"strace", "--env=LD_PRELOAD=/x/other.so", "ls"}));
  CHECK(is_kept({"strace", "-E", "A=1", "ls"}));
}

TEST_CASE("what fails in some shells, or may fail, is suspected and not refused") {
  for (const char *line :
       {"command export -n LD_PRELOAD; ls", "local LD_PRELOAD=; ls", "readonly LD_PRELOAD; unset LD_PRELOAD; ls",
        "declare -r LD_PRELOAD; LD_PRELOAD=; ls", "test $A && set -a; unset LD_PRELOAD; ls"}) {
    INFO(line);
    CHECK_FALSE(suspected_of({"sh", "-c", line}).empty());
  }
}

TEST_CASE("a line that runs what is not known is suspected, and says so") {
  for (const char *line :
       {"eval \"$A\"", "$A ls", "nice $(which env | cat) ls", "P=$(cat f); $P ls",
        "for A in nice 'env -i'; do $A ls; done", "read A; $A ls", "A=nice; B=1; test $B && A='env -i'; $A ls",
        "cat x | sh", "sh <x", ". $A/x; ls", ". x; ls", "sh -c \"$A\"", "ls; sh -c \"nice $A\""}) {
    INFO(line);
    CHECK_FALSE(suspected_of({"sh", "-c", line}).empty());
  }
  CHECK(suspected_of({"sh", "-c", "$A ls"}) == "sh has a command line that starts what $A holds");
  CHECK(suspected_of({"sh", "-c", "eval $A; ls"}) == "sh has a command line that runs eval with what is not known");
}

TEST_CASE("a line that may take the library away, or takes it from one program of several, is suspected") {
  for (const char *line : {"ls; unset LD_PRELOAD; ls",
                           "true || unset LD_PRELOAD; ls",
                           "if true; then unset LD_PRELOAD; fi; ls",
                           "unset LD_PRELOAD; $PROGRAM",
                           "env -u LD_PRELOAD $PROGRAM",
                           "f() { env -u LD_PRELOAD ls; }; f",
                           "unset LD_PRELOAD & ls",
                           "declare +x LD_PRELOAD; ls",
                           "LD_PRELOAD=$OTHER ls",
                           "for each in a b; do ls; unset LD_PRELOAD; done",
                           "cd / && unset LD_PRELOAD; ls",
                           "unset LD_PRELOAD\nls <<END\nunset\nEND",
                           "unset LD_PRELOAD; ration run ls; ls",
                           "if false; then exit 1; fi; env -i ls",
                           "die() { exit 1; }; env -i ls",
                           "[ -n \"$A\" ] || { exit 1; }; env -i ls",
                           "(exec true); (env -i ls)",
                           "sh <<END\nenv -i ls\nEND",
                           "env -i bash -s <<'END'\nls\nEND",
                           "function f { env -i ls; }; f",
                           "function f() {\n env -i ls\n}\nf",
                           "alias p='env -i ls'\np",
                           "trap 'env -i ls' EXIT; ls",
                           "trap ls EXIT; unset LD_PRELOAD",
                           "unset LD_PRELOAD{,_X}; ls",
                           "for each in ${!LD_*}; do unset $each; done; ls",
                           "LD_PRELOAD= eval ls",
                           "read LD_PRELOAD; ls",
                           "printf -v LD_PRELOAD /x/other.so; ls",
                           "OLD=$LD_PRELOAD; LD_PRELOAD=; LD_PRELOAD=$OLD; ls"}) {
    INFO(line);
    CHECK_FALSE(suspected_of({"bash", "-c", line}).empty());
  }
  CHECK_FALSE(suspected_of({"fish", "-c", "set -e LD_PRELOAD; ls"}).empty());
}

TEST_CASE("a line that keeps the library is not suspected") {
  for (const char *line : {"ls; unset LD_PRELOAD",
                           "exec ls; unset LD_PRELOAD; ls",
                           "unset -f LD_PRELOAD; ls",
                           "unset -n LD_PRELOAD; ls",
                           "unset $each; ls",
                           "read -r A; printf -v B x; ls",
                           "readonly LD_PRELOAD; ls",
                           "declare -x LD_PRELOAD; ls",
                           "LD_PRELOAD= git status; ls",
                           "RATION_DISABLE=1; ls",
                           "echo $LD_PRELOAD; ls | cat",
                           "export LD_PRELOAD=/x/other.so:$LD_PRELOAD; ls",
                           "# unset LD_PRELOAD\nls",
                           "if true; then LD_PRELOAD=/x/o.so:${LD_PRELOAD} ls; fi",
                           "unset LD_PRELOAD; ration run --limit 1GiB ls",
                           "echo \"unset LD_PRELOAD; ls\"; ls",
                           "command -v sudo; ls",
                           "unset LD_PRELOAD; export LD_PRELOAD=/x/libration.so; ls",
                           "case $A in (b) ls ;; esac",
                           "if ls; then LD_PRELOAD=/x/o.so:$LD_PRELOAD; export LD_PRELOAD; fi; ls",
                           "while read line; do ls $line; done <file",
                           "export PATH=/x:$PATH; ls",
                           "env -i LD_PRELOAD=$LD_PRELOAD RATION_LIMIT=$RATION_LIMIT ls",
                           "exec env -i LD_PRELOAD=\"${LD_PRELOAD}\" RATION_LIMIT=2GiB ls",
                           "LD_PRELOAD= date; exec ls",
                           "LD_PRELOAD=${LD_PRELOAD:-} ls",
                           "export LD_PRELOAD=${LD_PRELOAD:-/x/other.so}; ls",
                           "P=$(command -v ls); $P x",
                           "env -i true; ls",
                           "cat <<END\nunset LD_PRELOAD; LD_PRELOAD= x\nEND\nls",
                           "sh <<END\nls\nEND",
                           "A=nice; $A ls",
                           "exec ${A:-ls} x",
                           "trap 'rm -f x' EXIT; ls",
                           "alias l='ls -l'; ls",
                           "bash -c 'ls' <x",
                           "unset LD_PRELOAD; set -a; LD_PRELOAD=/x/libration.so; ls",
                           "env -u LD_PRELOAD LD_PRELOAD=$LD_PRELOAD ls",
                           "export LD_PRELOAD=/x/other.so; LD_PRELOAD=/x/libration.so:$LD_PRELOAD; ls"}) {
    INFO(line);
    CHECK(is_kept({"bash", "-c", line}));
  }
}

TEST_CASE("scripts are read like lines") {
  const Scripts folder;
  const std::string loses = folder.write("#!/bin/sh -e\n# as it was\nunset LD_PRELOAD\nexec \"$@\"\n");
  CHECK(is_lost({loses, "ls", "-l"}));
  CHECK(program_of({loses, "ls", "-l"}) == Line{"ls", "-l"});
  CHECK(is_lost({"nice", "sh", loses, "ls"}));
  CHECK(is_lost({"sh", "-c", ". " + loses + "; ls"}));
  CHECK_FALSE(suspected_of({"sh", "-c", "test $A && . " + loses + "; ls"}).empty());
  const std::string returns = folder.write("return 0\nunset LD_PRELOAD\n", "returns");
  CHECK(is_kept({"bash", "-c", ". " + returns + "; ls"}));
  CHECK(is_lost({"bash", "-c", ". " + returns + "; unset LD_PRELOAD; ls"}));
  folder.write("test $A && return\nunset LD_PRELOAD\n", "returns");
  CHECK_FALSE(suspected_of({"bash", "-c", ". " + returns + "; ls"}).empty());
  CHECK(is_lost({"sh", "-c", "exec \"$0\" \"$@\"", "env", "-i", "ls"}));
  CHECK(is_kept({"sh", "-c", "exec \"$0\" \"$@\"", "env", "A=1", "ls"}));
  CHECK(is_kept({loses}));
  CHECK(is_kept({loses, "ration", "run", "ls"}));
  CHECK(is_lost({folder.write("unset LD_PRELOAD\nls\n", "without"), "ls"}));
  CHECK(is_lost({folder.write("#!/usr/bin/env -S -u LD_PRELOAD bash\nls\n", "by_env")}));
  CHECK(is_kept({folder.write("#!/usr/bin/env -S A=1 bash\nls\n", "keeps")}));
  const std::string some = folder.write("#!/bin/bash\nfor each in *; do\n  env -u LD_PRELOAD ls\ndone\n", "some");
  CHECK(suspected_of({some}) == some + " is a script that loses LD_PRELOAD by env");
  CHECK(walk({"bash", some}).unchecked == "the script " + some + ", which loses LD_PRELOAD by env,");
  CHECK(suspected_of({"sh", "-c", some + "; ls"}).find("starts " + some + ", which is a script that loses") !=
        std::string::npos);
  const std::string itself = folder.write("#!/bin/sh\nls\n. $0\nsh /tmp/x\n", "itself");
  CHECK_FALSE(suspected_of({itself}).empty());
  const std::string again = folder.write("", "again");
  folder.write("#!/bin/sh\n" + again + "; " + again + "\n. " + again + "\n", "again");
  CHECK_FALSE(suspected_of({again}).empty());  // and the walk ends
  folder.write("X=1\n", "keeps");
  folder.write("unset LD_PRELOAD\n", "loses");
  for (const char *begin :
       {"cd \"$(dirname \"$0\")\"\n. ./", "DIR=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\n. $DIR/"}) {
    CHECK(is_kept({folder.write("#!/bin/bash\n" + std::string(begin) + "keeps\nls\n", "reads")}));
    CHECK_FALSE(suspected_of({folder.write("#!/bin/bash\n" + std::string(begin) + "loses\nls\n", "reads")}).empty());
  }
}

TEST_CASE("commands that take a command among their own words are looked through") {
  const Scripts folder;
  for (const Line &line : {Line{"find", "/", "-name", "x", "-exec", "env", "-u", "LD_PRELOAD", "ls", "{}", ";"},
                           Line{"setarch", "-R", "env", "-i", "ls"}, Line{"setarch", "x86_64", "-R", "env", "-i", "ls"},
                           Line{"linux64", "env", "-i", "ls"}, Line{"script", "-qc", "env -i ls", "/dev/null"},
                           Line{"watch", "-n", "1", "unset LD_PRELOAD; ls"}, Line{"watch", "env", "-i", "ls"},
                           Line{"watch", "-x", "env", "-i", "ls"}}) {
    INFO(line[0] << " " << line[1]);
    CHECK(is_lost(line));
  }
  for (const Line &line :
       {Line{"find", "/", "-exec", "ls", "{}", "+"}, Line{"find", "/", "-name", "env"}, Line{"script", "-c", "ls"},
        Line{"script", "log"}, Line{"watch", "ls"}, Line{"make", "-C", "/nowhere"}, Line{"cat", "-i", "sudo"},
        Line{"grep", "-rn", "unset LD_PRELOAD"}}) {
    INFO(line[0] << " " << line[1]);
    CHECK(is_kept(line));
  }
  CHECK(program_of({"find", "/", "-exec", "ls", "-l", ";"}) == Line{"ls", "-l"});
  CHECK_FALSE(suspected_of({"find", "/", "-exec", "ls", ";", "-exec", "env", "-i", "ls", ";"}).empty());
  const std::string makefile = folder.write("all:\n\t@unset LD_PRELOAD; ls\n");
  CHECK(suspected_of({"make", "-f", makefile}) == "make has a makefile that changes LD_PRELOAD");
  const std::string prefixed = folder.write("RUN := env -i\nall:\n\t@$(RUN) ls\n", "prefixed");
  for (const std::string &text : {std::string("unexport LD_PRELOAD\nall:\n\tls\n"), "include " + prefixed + "\n",
                                  std::string("OF = env\nRUN = $(OF) -i\nall:\n\t${RUN} ls\n")}) {
    INFO(text);
    CHECK_FALSE(suspected_of({"make", "-f", folder.write(text, "loses")}).empty());
  }
  CHECK(is_kept({"make", "-f", folder.write("RUN = nice\nOTHER = env -i\nall:\n\t$(RUN) ls $@ $(CC) $$A\n", "keeps")}));
  const std::string keeps = folder.write("RUN = nice\nall:\n\t$(RUN) ls\n", "keeps");
  CHECK(is_kept({"make", "-f", keeps, "A=1"}));
  CHECK(is_lost({"make", "-f", keeps, "LD_PRELOAD="}));
  CHECK_FALSE(suspected_of({"make", "-f", keeps, "RUN=env -i"}).empty());
  CHECK_FALSE(suspected_of({"make", "-f", folder.write("all:\n\t$(MAKE) -f " + makefile + "\n", "again")}).empty());
}

TEST_CASE("an unknown program that gets a command among its arguments may start it") {
  CHECK(suspected_of({"unknown", "-x", "env", "-i", "ls"}) == "unknown has an argument that loses LD_PRELOAD by env");
  CHECK(suspected_of({"unknown", "unset LD_PRELOAD; ls"}) == "unknown has an argument that changes LD_PRELOAD");
  CHECK_FALSE(suspected_of({"unknown", "-c", "import os; del os.environ['LD_PRELOAD']; ls()"}).empty());
  CHECK_FALSE(suspected_of({"unknown", "os.environ.pop('LD_PRELOAD')"}).empty());
  CHECK(is_kept({"unknown", "--env", "LD_PRELOAD"}));
  CHECK(is_kept({"unknown", "env", "A=1", "ls"}));
}

TEST_CASE("settings that the line takes away or gives hold for the program") {
  const CommandWalk less = walk({"env", "-u", "RATION_LIMIT", "RATION_DISABLE=1", "./x"});
  REQUIRE(less.changes.size() == 1);
  CHECK(less.changes.front().name + " " + less.changes.front().variable == "env RATION_LIMIT");
  CHECK(less.environment.value("RATION_LIMIT").empty());
  CHECK(less.environment.value("RATION_DISABLE") == "1");
  CHECK(walk({"ration", "run", "--sim", "8GiB", "./x"}).probed.value("SIMCUDA_DEVICES") == "8GiB");
}
