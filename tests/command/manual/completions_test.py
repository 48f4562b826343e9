#!/usr/bin/env python3
"""What bash, zsh and fish complete: every option that the help shows, values, files, and the command that is run."""
import pathlib
import re
import shutil
import subprocess
import sys

from described import SHARE, options, verbs
from harness import BUILD, HANG, expect, expect_that, main

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ps"))
from members import FIRST, TREE, Member  # noqa: E402

BASH = SHARE / "bash-completion/completions/ration"
ZSH = SHARE / "zsh/site-functions/_ration"
FISH = SHARE / "fish/vendor_completions.d/ration.fish"
PACKAGE = pathlib.Path("/usr/share/bash-completion/bash_completion")
RUN = ("run", "find-min", "find-faults", "env")  # verbs that take a command
LOOKS = "doctor"  # takes one behind -- alone
PATH = f"{BUILD}/bin:/usr/bin:/bin"
MODES = ["async", "direct", "pool"]

BASH_SCRIPT = """
compopt() { :; }  # refused where no key was pressed
[ -z "$PACKAGE" ] || source "$PACKAGE"
source "$FILE"
[ -z "$INNER" ] || complete -W "$INNER" inner
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="${LINE-$*}" COMP_TYPE=9 COMP_KEY=9
COMP_POINT=${#COMP_LINE}
_ration ration "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(folder, *words, package="", inner="", **more):
    environment = {"PATH": PATH, "FILE": str(BASH), "PACKAGE": str(package), "INNER": inner, "HOME": folder, **more}
    done = subprocess.run(["bash", "--norc", "-c", BASH_SCRIPT, "bash", "ration", *words], capture_output=True, text=True,
                          cwd=folder, env=environment, check=False)
    expect("stderr", done.stderr, "")
    return sorted(done.stdout.splitlines())


def fish(folder, line, **more):
    script = f"source {FISH}; complete -c inner -f -a 'red green'; complete -c inner -l loud; complete -c inner -x -l shade -a 'light dark'; complete -C {line!r}"
    environment = {"PATH": PATH, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder, **more}
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, cwd=folder, env=environment, check=False)
    expect("stderr", done.stderr, "")
    return sorted(line.split("\t")[0] for line in done.stdout.splitlines())


# A shell at a terminal, whose tab key prints each match and then ends it.
ZSH_SETUP = """
PS1= fpath=($FOLDER $fpath)
autoload -Uz compinit && compinit -u -D
_inner() { compadd red green }
compdef _inner inner
compadd() {
  if [[ ${@[1,(i)(-|--)]} != *-[a-zA-Z0-9]#[OAD]\\ * ]]; then
    local -a matches
    builtin compadd -O matches "$@"
    print -rl -- "<"$^matches">"
  fi
  builtin compadd "$@"
}
finish() { print "<END>"; exit }
comppostfuncs=(finish)
print "<READY>"
"""
ZSH_SCRIPT = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $SETUP"
zpty -r -m shell text '*<READY>*'
zpty -w -n shell "$LINE"$'\\t'
zpty -r -m shell text '*<END>*'
print -r -- $text
"""


def zsh(folder, line, **more):
    setup = pathlib.Path(folder) / ".setup"
    setup.write_text("setopt extended_glob\n" + ZSH_SETUP)
    environment = {"PATH": PATH, "HOME": folder, "TERM": "dumb", "FOLDER": str(ZSH.parent), "SETUP": str(setup), "LINE": line, **more}
    done = subprocess.run(["zsh", "-f", "-c", ZSH_SCRIPT], capture_output=True, text=True, cwd=folder,
                          env=environment, check=False, timeout=HANG)
    expect("status, stderr", (done.returncode, done.stderr), (0, ""))
    return sorted(set(re.findall(r"<([^<>]+)>", done.stdout)) - {"END", "READY"})


def zsh_lines(folder):
    for name in ("one.jsonl", "two.jsonl"):
        (pathlib.Path(folder) / name).touch()
    expect("verbs", zsh(folder, "ration "), sorted([*verbs(), "help"]))
    expect("values", zsh(folder, "ration run --mode "), MODES)
    expect("behind the sign", zsh(folder, "ration replay --mode=d"), ["direct"])
    expect("files", zsh(folder, "ration report o"), ["one.jsonl"])
    expect("of an option", zsh(folder, "ration run --log tw"), ["two.jsonl"])
    expect("or a word", zsh(folder, "ration run --summary "), ["json", "one.jsonl", "two.jsonl"])
    expect("of one that has no value", zsh(folder, "ration run --log --mode d"), ["direct"])
    expect_that("a command behind it", "bash" in zsh(folder, "ration run --log -- bas"))
    expect("help", zsh(folder, "ration help con"), ["convert"])
    for verb in ("run", "env"):
        for opening in ("", "-- ", "--limit=1GiB --mode pool -- "):
            expect_that(f"{opening}: a command", "bash" in zsh(folder, f"ration {verb} {opening}bas"))
            expect(f"{opening}: its argument", zsh(folder, f"ration {verb} {opening}inner gr"), ["green"])
    expect_that("a command that is looked at", "bash" in zsh(folder, f"ration {LOOKS} -- bas"))
    expect("its argument", zsh(folder, f"ration {LOOKS} --json -- inner gr"), ["green"])
    expect("before --", zsh(folder, f"ration {LOOKS} o"), [])
    expect("a share is no file", zsh(folder, "ration cdi o"), [])


def zsh_words(*verb):
    """The options in the part of a verb."""
    text = ZSH.read_text()
    part = re.search(rf"^        {verb[0]}\)\n(.*?)^          ;;", text, re.M | re.S) if verb else re.search(
        r"^  _arguments -C.*?&& found", text, re.M | re.S)
    return re.findall(r"^ +'(?:\([^)]*\))?\*?(--?[\w-]+)", part.group(), re.M)


def fish_words(*verb):
    condition = f"'__ration_in {verb[0]}'" if verb else "__fish_use_subcommand"
    lines = re.findall(rf"^complete -c ration -n {condition} (-[sl] .*)$", FISH.read_text(), re.M)
    found = [match for line in lines for match in re.findall(r"(?<!\S)-([sl]) (\S+)", line.partition(" -d ")[0])]
    return [("--" if kind == "l" else "-") + name for kind, name in found]


def everywhere(name, *verb):
    def case(folder):
        expect_that("bash", name in bash(folder, *verb, "-"))
        expect_that("zsh", name in zsh_words(*verb))
        expect_that("fish", name in fish_words(*verb))
    return case


def bash_verbs(folder):
    expect("verbs and options", bash(folder, ""), sorted([*verbs(), "help", *options()]))
    expect("verbs with a beginning", bash(folder, "find"), ["find-faults", "find-min"])
    expect("help", bash(folder, "help", "con"), ["convert"])
    expect("behind the topic", bash(folder, "help", "run", ""), [])


def bash_values(folder):
    for verb in (verb for verb in verbs() if "--mode" in options(verb)):
        expect(f"{verb} --mode", bash(folder, verb, "--mode", ""), MODES)
        expect(f"{verb} --mode=, one word", bash(folder, verb, "--mode=po"), ["--mode=pool"])
        expect(f"{verb} --mode=, as readline splits it", bash(folder, verb, "--mode", "=", "po"), ["pool"])
        expect(f"{verb} --mode=, nothing behind", bash(folder, verb, "--mode", "="), MODES)
    expect("convert --to", bash(folder, "convert", "--to", "c"), ["chrome", "collapsed", "csv"])
    expect("report --by", bash(folder, "report", "--by", "s"), ["size"])
    expect("replay --backing", bash(folder, "replay", "--mode", "pool", "--backing", ""), ["slab", "vmm"])
    expect("a free value", bash(folder, "run", "--limit", ""), [])


def bash_files(folder):
    for name in ("one.jsonl", "with blank", "other"):
        (pathlib.Path(folder) / name).touch()
    everything = ["one.jsonl", "other", "with blank"]
    expect("an argument", bash(folder, "report", ""), everything)
    expect("a second one", bash(folder, "diff", "other", "o"), ["one.jsonl", "other"])
    expect("of an option", bash(folder, "run", "--log", "w"), ["with blank"])
    expect("behind its sign", bash(folder, "run", "--log", "=", "w"), ["with blank"])
    expect("or a word", bash(folder, "run", "--summary", ""), sorted([*everything, "json"]))
    expect("begun", bash(folder, "run", "--summary", "js"), ["json"])
    expect("one word", bash(folder, "run", "--summary=js"), ["--summary=json"])
    expect("of one that has no value", bash(folder, "run", "--log", "--mode", "d"), ["direct"])
    expect("an option in place of its value", bash(folder, "run", "--log", "--mod"), ["--mode"])
    expect_that("a command behind it", "bash" in bash(folder, "run", "--log", "--", "bas"))
    expect("behind the sign", bash(folder, "convert", "other", "--output", "=", "on"), ["one.jsonl"])
    expect("more of them", bash(folder, "report", "other", "one"), ["one.jsonl"])
    expect("behind --", bash(folder, "report", "--", "oth"), ["other"])
    expect("a share is no file", bash(folder, "cdi", "o"), [])
    expect("no files behind a target", bash(folder, "set", "lab", "o"), [])


def bash_command(package):
    def case(folder):
        inner = {"package": package, "inner": "red green"}
        (pathlib.Path(folder) / "greenhouse").touch()
        for verb in RUN:
            for opening in ((), ("--",), ("--sim", "1GiB"), ("--sim", "=", "1GiB", "--"), ("--sim", "1GiB", "--mode=pool", "--")):
                start = (verb, *opening)
                expect_that(f"{start}: a command", "bash" in bash(folder, *start, "bas", **inner))
                wanted = ["green", "greenhouse"][:1] if package else ["greenhouse"]
                expect(f"{start}: its argument", bash(folder, *start, "inner", "--mode", "gr", **inner), wanted)
                expect(f"{start}: its options are its own", bash(folder, *start, "inner", "--lim", **inner), [])
        expect("a value is no command", bash(folder, "run", "--mode", "a", **inner), ["async"])
        for start in ((LOOKS, "--"), (LOOKS, "--json", "--")):
            expect_that(f"{start}: a command", "bash" in bash(folder, *start, "bas", **inner))
            expect(f"{start}: its argument", bash(folder, *start, "inner", "gr", **inner), ["green"] if package else ["greenhouse"])
        expect("before --", bash(folder, LOOKS, "gr", **inner), [])
    return case


def fish_lines(folder):
    for name in ("one.jsonl", "two.jsonl"):
        (pathlib.Path(folder) / name).touch()
    expect_that("verbs", set(verbs()) | {"help"} <= set(fish(folder, "ration ")))
    for verb in verbs():
        long_names = {name for name in options(verb) if name.startswith("--")}
        expect_that(f"options of {verb}", long_names <= set(fish(folder, f"ration {verb} --")))
    expect("values", fish(folder, "ration run --mode "), MODES)
    expect("behind the sign", fish(folder, "ration run --mode=d"), ["--mode=direct"])
    expect("files", fish(folder, "ration report o"), ["one.jsonl"])
    expect("of an option", fish(folder, "ration run --log tw"), ["two.jsonl"])
    expect("or a word", (fish(folder, "ration run --summary j"), fish(folder, "ration run --summary tw")), (["json"], ["two.jsonl"]))
    expect("of one that has no value", fish(folder, "ration run --log --mode d"), ["direct"])
    expect_that("a command behind it", "bash" in fish(folder, "ration run --log -- bas"))
    expect("help", fish(folder, "ration help con"), ["convert"])
    for verb in RUN:
        for opening in ("", "-- ", "--limit 1GiB ", "--limit=1GiB --mode pool -- "):
            expect_that(f"{opening}: a command", "bash" in fish(folder, f"ration {verb} {opening}bas"))
            expect(f"{opening}: its argument", fish(folder, f"ration {verb} {opening}inner gr"), ["green"])
            expect(f"{opening}: its options are its own", fish(folder, f"ration {verb} {opening}inner --l"), ["--loud"])
            expect(f"{opening}: their values", fish(folder, f"ration {verb} {opening}inner --loud --shade d"), ["dark"])
        expect_that(f"{verb} -: no command", "--limit" in fish(folder, f"ration {verb} -") or verb == "find-min")
        expect("no command begins so", [word for word in fish(folder, f"ration {verb} -l") if word[0] != "-"], [])
    expect_that("a command that is looked at", "bash" in fish(folder, f"ration {LOOKS} -- bas"))
    expect("its argument", fish(folder, f"ration {LOOKS} --json -- inner gr"), ["green"])
    expect("its option", fish(folder, f"ration {LOOKS} -- inner --l"), ["--loud"])
    expect("before --", fish(folder, f"ration {LOOKS} o"), [])
    expect("a share is no file", fish(folder, "ration cdi o"), [])


def targets(complete):
    """`ration set` completes the groups and processes that run, and no files."""
    def case(folder):
        (pathlib.Path(folder) / "lab.jsonl").touch()
        state = pathlib.Path(folder) / "state"
        state.mkdir(mode=0o700)
        settings = {"RATION_STATE_DIR": str(state)}
        expect("nothing runs", complete(folder, "", **settings), [])
        with Member(state, "0", f"{FIRST}=1", "named=lab") as one, Member(state, "0", f"{FIRST}=1", "named=render", f"tree={TREE}") as two:
            everything = sorted([str(one.pid), str(two.pid), "lab", "render", "tree:" + TREE[:8]])
            expect("all", complete(folder, "", **settings), everything)
            expect("with a beginning", complete(folder, "la", **settings), ["lab"])
            expect("behind an option", complete(folder, "--limit 8GiB re", **settings), ["render"])
            expect("within a name", complete(folder, "tree:0", **settings), ["tree:" + TREE[:8]])
    return case


def bash_targets(folder, words, **settings):
    """As readline splits the line, at each colon, too, and puts what is completed behind it."""
    line = f"ration set {words}"
    split = [part for word in line.split(" ") for part in (re.split("(:)", word) if word else [""])]
    begun = words.rpartition(" ")[2]
    begun = begun[:begun.rfind(":") + 1]
    return [begun + found for found in bash(folder, *split[1:], LINE=line, **settings)]


def syntax(shell, file):
    def case(_):
        said = subprocess.run([shell, "-n", file], capture_output=True, text=True, check=False)
        expect(f"{shell} -n", (said.returncode, said.stderr), (0, ""))
    return case


cases = {"syntax for bash": syntax("bash", BASH), "verbs": bash_verbs, "values": bash_values, "files": bash_files,
         "targets": targets(bash_targets), "commands without bash-completion": bash_command("")}
if PACKAGE.exists():
    cases["commands with bash-completion"] = bash_command(PACKAGE)
else:
    print("skipped: commands with bash-completion, which is not installed")
for shell, more in (("zsh", {"syntax for zsh": syntax("zsh", ZSH), "lines in zsh": zsh_lines,
                             "targets in zsh": targets(lambda folder, words, **settings: zsh(folder, f"ration set {words}", **settings))}),
                    ("fish", {"syntax for fish": syntax("fish", FISH), "lines in fish": fish_lines,
                              "targets in fish": targets(lambda folder, words, **settings: fish(folder, f"ration set {words}", **settings))})):
    if shutil.which(shell):
        cases |= more
    else:
        print(f"skipped: {', '.join(more)}, because {shell} is not installed")
cases |= {" ".join(["ration", *verb, name]): everywhere(name, *verb)
          for verb in [(), *((verb,) for verb in verbs())] for name in options(*verb)}
main(cases)
