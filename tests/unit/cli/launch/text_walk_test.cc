// Lines, scripts and makefiles, as command_walk.h follows them.
#include "walked.h"

using namespace ration::cli;

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
                           "N=LD_PRELOAD; unset \"$N\"; ls",
                           "set -- a b env -i ls; shift 2; \"$@\"",
                           "set -- a env -i ls; exec \"${@:2}\"",
                           "set -- env -i ls; sh -c \"$*\"",
                           "LD_PRELOAD=/x/other.so ls"}) {
    INFO(line);
    CHECK(is_lost({"bash", "-c", line}));
  }
  CHECK(is_lost({"sh", "-c", "exec \"$0\" \"$@\"", "env", "-i", "ls"}));
  CHECK(is_lost({"sh", "-c", "unset LD_PRELOAD; exec \"$@\"", "sh", "ls"}));
  CHECK(is_lost({"strace", "-E", "LD_PRELOAD", "ls"}));
  CHECK(is_lost({"strace", "--env=LD_PRELOAD=/x/other.so", "ls"}));
  CHECK(is_kept({"strace", "-E", "A=1", "ls"}));
}

TEST_CASE("what fails in some shells, or may fail, is suspected and not refused") {
  for (const char *line : {"command export -n LD_PRELOAD; ls", "local LD_PRELOAD=; ls",
                           "readonly LD_PRELOAD; unset LD_PRELOAD; ls", "declare -r LD_PRELOAD; LD_PRELOAD=; ls",
                           "test $A && set -a; unset LD_PRELOAD; ls", "return 0; unset LD_PRELOAD; ls"}) {
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
                           "unset LD_PRELOAD{,X}; ls",
                           "unset LD_{PRELOAD,X}; ls",
                           "unset ${!LD_*}; ls",
                           "unset \"${!RATION_@}\"; ls",
                           "for each in ${!LD_*}; do unset $each; done; ls",
                           "for each in $(compgen -v); do unset \"$each\"; done; ls",
                           "LD_PRELOAD=/x/other.so eval ls",
                           "LD_PRELOAD= eval 'nice ls'",
                           "read -r LD_PRELOAD; ls",
                           "printf -v LD_PRELOAD x; ls",
                           "mapfile LD_PRELOAD; ls",
                           "LD_PRELOAD=${LD_PRELOAD#*:} ls",
                           "LD_PRELOAD=${LD_PRELOAD/libration.so/} ls",
                           "P=/x/o.so:$LD_PRELOAD; unset LD_PRELOAD; LD_PRELOAD=$P ls",
                           "unset LD_PRELOAD; P=/x/o.so:$LD_PRELOAD; export LD_PRELOAD=$P; ls",
                           "test $A && P=/x/o.so:$LD_PRELOAD; LD_PRELOAD=$P ls",
                           "declare +x LD_PRELOAD; if ls; then ls; fi",
                           "OLD=$LD_PRELOAD; LD_PRELOAD=; LD_PRELOAD=$OLD; ls"}) {
    INFO(line);
    CHECK_FALSE(suspected_of({"bash", "-c", line}).empty());
  }
  CHECK_FALSE(suspected_of({"fish", "-c", "set -e LD_PRELOAD; ls"}).empty());
  CHECK_FALSE(suspected_of({"zsh", "-c", "unset -m 'LD_*'; ls"}).empty());
}

TEST_CASE("a line that keeps the library is not suspected") {
  for (const char *line : {"ls; unset LD_PRELOAD",
                           "exec ls; unset LD_PRELOAD; ls",
                           "unset -f LD_PRELOAD; ls",
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
                           "unset -n LD_PRELOAD; ls",
                           "export -fn LD_PRELOAD; ls",
                           "export LD_PRELOAD+=:/x/o.so; ls",
                           "PATH+=:/x; ls",
                           "P=/x/o.so:$LD_PRELOAD; LD_PRELOAD=$P ls",
                           "P=/x/o.so:$LD_PRELOAD; export LD_PRELOAD=${P}; ls",
                           "LD_PRELOAD= git status; ls",
                           "env -u LD_PRELOAD gcc -c x.c && ls",
                           "declare -x LD_PRELOAD; ls",
                           "readonly LD_PRELOAD; ls",
                           "export A LD_PRELOAD; if ls; then ls; fi",
                           "for each in A B; do unset $each; done; echo $LD_LIBRARY_PATH; ls",
                           "A=1 eval ls",
                           "read A; ls",
                           "printf -v A x; ls",
                           "sudo -l; ls",
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
  const std::string returns = folder.write("A=1\nreturn 0\nunset LD_PRELOAD\n", "returns");
  CHECK(is_kept({"sh", "-c", ". " + returns + "; ls"}));
  CHECK(is_lost({"sh", "-c", ". " + returns + "; env -i ls"}));
  const std::string perhaps = folder.write("test $A && return\nunset LD_PRELOAD\n", "perhaps");
  CHECK_FALSE(suspected_of({"sh", "-c", ". " + perhaps + "; ls"}).empty());
  const std::string starts = folder.write("\"$@\"\n", "starts");
  CHECK_FALSE(suspected_of({"sh", "-c", ". " + starts + " env -i ls; ls"}).empty());
  CHECK(is_kept({"sh", "-c", ". " + starts + " nice ls; ls"}));
  CHECK(is_kept({"sh", "-c", ". /etc/profile; ls"}));
  folder.write("X=1\n", "keeps");
  folder.write("unset LD_PRELOAD\n", "loses");
  for (const char *begin :
       {"cd \"$(dirname \"$0\")\"\n. ./", "DIR=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\n. $DIR/"}) {
    CHECK(is_kept({folder.write("#!/bin/bash\n" + std::string(begin) + "keeps\nls\n", "reads")}));
    CHECK_FALSE(suspected_of({folder.write("#!/bin/bash\n" + std::string(begin) + "loses\nls\n", "reads")}).empty());
  }
}

TEST_CASE("what a script is given may be what it starts") {
  const Scripts folder;
  for (const char *text : {"while getopts ab A; do B=1; done\nshift $((OPTIND - 1))\nexec \"$@\"\n", "$*\n",
                           "if [ $A ]; then shift; fi\nexec \"$@\"\n", "for each; do echo; done\n\"$@\"\n"}) {
    INFO(text);
    const std::string script = folder.write(std::string("#!/bin/sh\n") + text);
    CHECK_FALSE(suspected_of({script, "-a", "env", "-u", "LD_PRELOAD", "ls"}).empty());
    CHECK_FALSE(suspected_of({"sh", script, "-a", "env", "-i", "ls"}).empty());
    CHECK(is_kept({script, "-a", "env", "A=1", "ls"}));
  }
}

TEST_CASE("make's own words, and the targets that it is asked for, count") {
  const Scripts folder;
  const auto make = [&](const std::string &text, const Line &words) {
    Line line = {"make", "-f", folder.write(text, "makefile")};
    line.insert(line.end(), words.begin(), words.end());
    return line;
  };
  const std::string all = "all:\n\t$(E) ls\n";
  CHECK(is_lost(make(all, {"LD_PRELOAD="})));
  CHECK(is_lost({"make", "LD_PRELOAD=", "-f", folder.write(all)}));
  CHECK(changes_of(make(all, {"RATION_LIMIT=8GiB"})) == Line{"make sets RATION_LIMIT=8GiB, in place of 4GiB"});
  CHECK_FALSE(suspected_of(make("E = nice\n" + all, {"E=env -i"})).empty());
  CHECK(is_kept(make("E = env -i\n" + all, {"E=nice"})));
  const std::string other = folder.write("all:\n\tenv -i ls\nkeeps:\n\tls\n", "other");
  CHECK_FALSE(suspected_of(make("all:\n\t$(MAKE) -f " + other + "\n", {})).empty());
  CHECK(is_kept(make("all:\n\t$(MAKE) -f " + other + " keeps\n", {})));
  CHECK_FALSE(suspected_of(make("SHELL = /usr/bin/env -i sh\n" + all, {})).empty());
  CHECK(is_kept(make("SHELL := /usr/bin/env bash\n" + all, {})));
  const std::string several =
      ".PHONY: all loses\nNEEDED = it\nall: $(NEEDED)\n\tls\nit: ; ls\nloses: lost\nlost: ; env -i ls\n";
  for (const Line &goals : {Line{}, Line{"all"}, Line{"-j", "4"}, Line{"it", "all"}}) {
    CHECK(is_kept(make(several, goals)));
  }
  CHECK_FALSE(suspected_of(make(several, {"loses"})).empty());
  CHECK_FALSE(suspected_of(make(several + ".DEFAULT_GOAL := lost\n", {})).empty());
  for (const char *text : {"all: x\n\tls\n%: %.c\n\tenv -i ls\n", "all: export LD_PRELOAD := /x/o.so\nall:\n\tls\n",
                           "export LD_PRELOAD = /x/o.so\nall:\n\tls\n", "all: it\nit:\n\tunset LD_PRELOAD; ls\n"}) {
    INFO(text);
    CHECK_FALSE(suspected_of(make(text, {})).empty());
  }
  CHECK(is_kept(make("export LD_PRELOAD := /x/o.so:$(LD_PRELOAD)\nexport LD_PRELOAD\nall:\n\tls\n", {})));
  CHECK(is_kept(make("all:\n\t$(MAKE) -f $(MAKEFILE) all; make -f " + other + " keeps; ls\n", {})));
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
}
