#include <unistd.h>

#include "walked.h"

using namespace ration::cli;

TEST_CASE("what looks for its program passes its environment on, and is not read") {
  const Scripts folder;
  const std::string pyenv = folder.write("#!/bin/bash\nunset LD_PRELOAD\n\"$(pyenv-which $2)\"\n", "pyenv");
  const std::string python = "#!/bin/sh\nprogram=${0##*/}\nexec " + pyenv + " exec \"$program\" \"$@\"\n";
  CHECK(is_kept({folder.write(python, "python3")}));
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

TEST_CASE("LD_PRELOAD by its name alone is what ration run sets after the walk") {
  const char *const own[] = {"RATION_LIMIT=4GiB", "PATH=/usr/bin:/bin", nullptr};
  for (const Line &line : {Line{"systemd-run", "-E", "LD_PRELOAD", "-E", "RATION_LIMIT", "ls"},
                           Line{"sudo", "--preserve-env=RATION_LIMIT,LD_PRELOAD", "ls"}}) {
    CHECK_FALSE(loss_of_limit(walk_command(line, EnvironmentBlock(own), kLibrary), kLibrary));
  }
  CHECK(is_lost({"sudo", "-E", "ls"}));
  CHECK(is_lost({"sudo", "--preserve-env=HOME", "ls"}));
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

TEST_CASE("a launcher that only tells something starts nothing") {
  for (const Line &line :
       {Line{"ssh", "-V"}, Line{"crontab", "-l"}, Line{"at", "-l"}, Line{"sudo", "-l"}, Line{"sudo", "--version"},
        Line{"srun", "-V"}, Line{"env", "-i", "--help"}, Line{"docker", "ps"}, Line{"docker", "--version"},
        Line{"service", "x", "status"}, Line{"make", "-n", "LD_PRELOAD="}, Line{"kubectl", "-n", "run", "get", "pods"},
        Line{"docker-compose", "-f", "up", "ps"}}) {
    INFO(line[0] << " " << line[1]);
    CHECK(is_kept(line));
    CHECK(only_asks(line));
  }
  for (const Line &line : {Line{"ssh", "host", "ls", "-V"}, Line{"sudo", "-u", "l", "ls", "--version"},
                           Line{"kubectl", "-n", "get", "exec", "pod"}, Line{"crontab", "-u", "l", "file"},
                           Line{"service", "x", "start"}}) {
    INFO(line[0] << " " << line[1]);
    CHECK(is_lost(line));
    CHECK_FALSE(only_asks(line));
  }
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
