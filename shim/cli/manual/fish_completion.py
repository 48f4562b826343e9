"""Completion for fish, from the description of the command."""
from completed import NOTE, brief, names_of, runs_command, takes_file, takes_files, takes_targets, takes_word, words_of


FISH = r"""
# The words of the command that the verb runs, as far as they are typed. Fails before it begins.
function __ration_command
    set -l words (commandline -opc)
    set -l verb "$words[2]"
    contains -- $verb @RUNS@ @BEHIND@
    or return
    set -e words[1..2]
    while set -q words[1]
        set -l word $words[1]
        switch $word
            case --
                set -e words[1]
                string join \n -- $words
                return 0
            case '--*=*'
            case '-*'
                if contains -- $word @VALUED@
                    set -q words[2]
                    and not string match -q -- '-*' $words[2]
                    and set -e words[2]
                end
            case '*'
                if contains -- $verb @RUNS@
                    string join \n -- $words
                    return 0
                end
        end
        set -e words[1]
    end
    return 1
end

# Succeeds among the options and arguments of the verbs in $argv.
function __ration_in
    set -l words (commandline -opc)
    contains -- "$words[2]" $argv
    and not __ration_command >/dev/null
end

# Succeeds where the next word can be one of the command.
function __ration_runs
    set -l words (commandline -opc)
    if contains -- "$words[2]" @RUNS@
        not string match -q -- '-*' (commandline -ct)
        or __ration_command >/dev/null
    else
        __ration_command >/dev/null
    end
end

# What the command completes itself with.
function __ration_of_command
    set -l line (string join ' ' -- (string escape -- (__ration_command)) (commandline -ct))
    complete "--do-complete=$line"
end

# Groups and processes that run under Ration.
function __ration_targets
    set -l words (commandline -opc)
    command $words[1] ps --targets 2>/dev/null
end

complete -c ration -f
complete -c ration -n __ration_runs -x -a '(__ration_of_command)'
"""


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(option, condition):
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option["names"])
    value = ""
    if takes_word(option):
        value = " -r -F" if takes_file(option) else " -x"
        value += f" -a {fish_quoted(' '.join(words_of(option)))}" if words_of(option) else ""
    return f"complete -c ration -n {condition} {names}{value} -d {fish_quoted(brief(option['text']))}"


def fish(command):
    verbs = command["verbs"]
    valued = dict.fromkeys(names_of(each for verb in verbs if verb["command_begins"] for each in verb["options"] if takes_word(each)))
    text = FISH.replace("@RUNS@", " ".join(verb["name"] for verb in verbs if runs_command(verb)))
    text = text.replace("@BEHIND@", " ".join(verb["name"] for verb in verbs if verb["command_begins"] and not runs_command(verb)))
    text = text.replace("@VALUED@", " ".join(valued))
    lines = [fish_option(option, "__fish_use_subcommand") for option in command["options"]]
    for name, about in [*((verb["name"], verb["text"]) for verb in verbs), ("help", "print the help of a verb")]:
        lines.append(f"complete -c ration -n __fish_use_subcommand -a {name} -d {fish_quoted(about)}")
        if name != "help":
            lines.append(f"complete -c ration -n '__ration_in help' -a {name} -d {fish_quoted(about)}")
    for verb in verbs:
        condition = f"'__ration_in {verb['name']}'"
        lines += [fish_option(option, condition) for option in verb["options"]]
        if takes_files(verb):
            lines.append(f"complete -c ration -n {condition} -F")
        if takes_targets(verb):
            lines.append(f"complete -c ration -n {condition} -a '(__ration_targets)'")
    return NOTE + "\n" + text + "\n".join(lines) + "\n"
