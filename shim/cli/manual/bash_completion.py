"""Completion for bash, from the description of the command."""
from completed import NOTE, names_of, runs_command, takes_file, takes_files, takes_targets, takes_word, words_of


def cases(pairs, indent):
    """Lines of a shell's `case`: (pattern, text), those with one text together."""
    together = {}
    for pattern, text in pairs:
        together.setdefault(text, []).append(pattern)
    return [f"{indent}{'|'.join(patterns)}) {text} ;;" for text, patterns in together.items()]


BASH = r"""
# The options of the verb $1, and those of them that take the next word.
_ration_options() {
  case $1 in
@OPTIONS@
  esac
}

# What the option $2 of the verb $1 takes: "file", words, both, or nothing that could be listed.
_ration_values() {
  case $1:$2 in
@VALUES@
  esac
}

# Files, and the words in $2.
_ration_files() {
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen -f -W "$2" -- "$1")
}

# The command that a verb runs, which begins at word $1 of the line, completes itself.
_ration_command() {
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "$1"
  elif declare -F _command_offset >/dev/null; then  # bash-completion before 2.12
    _command_offset "$1"
  elif [ "$1" -eq "$COMP_CWORD" ]; then
    mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
  else
    _ration_files "${COMP_WORDS[COMP_CWORD]}"
  fi
}

# Groups and processes that run under Ration. Readline splits a name such as tree:1f2e at the colon.
_ration_targets() {
  local name=${COMP_LINE:0:COMP_POINT}
  name=${name##* }
  mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" ps --targets 2>/dev/null | cut -f1)" -- "$name")
  [[ $name != *:* || $COMP_WORDBREAKS != *:* ]] || COMPREPLY=("${COMPREPLY[@]#"${name%:*}:"}")
}

_ration() {
  # readline splits --option=value at the sign. places[N]: where words[N] begins on the line.
  local words=() places=() at word after_sign=''
  for ((at = 1; at <= COMP_CWORD; at++)); do
    word=${COMP_WORDS[at]}
    if [[ -n $after_sign || ($word == = && ${#words[@]} -gt 0 && ${words[-1]} == --*) ]]; then
      words[-1]+=$word
      after_sign=
      [[ $word != = ]] || after_sign=yes
    else
      words+=("$word")
      places+=("$at")
    fi
  done
  local last=$((${#words[@]} - 1)) current=${words[-1]} verb=${words[0]}
  local options='' valued='' runs='' behind='' files='' targets='' given='' option='' values
  COMPREPLY=()
  if ((last == 0)); then
    mapfile -t COMPREPLY < <(compgen -W "@VERBS@ help @OWN@" -- "$current")
    return
  fi
  _ration_options "$verb"
  for ((at = 1; at < last; at++)); do
    word=${words[at]}
    [[ $word != -* ]] || option=  # no value begins so
    if [[ -n $option ]]; then
      option=
    elif [[ $word == -- ]]; then
      if [[ -n $runs$behind ]]; then
        _ration_command "${places[at + 1]}"
      elif [[ -n $files ]]; then
        _ration_files "$current"
      fi
      return
    elif [[ $word == -* ]]; then
      [[ " $valued " != *" $word "* ]] || option=$word
    elif [[ -n $runs ]]; then
      _ration_command "${places[at]}"
      return
    elif [[ $word != : && ${words[at + 1]} != : ]]; then  # a whole word
      given=yes
    fi
  done
  word=$current
  [[ $word != -* ]] || option=
  if [[ -z $option && $current == --*=* ]]; then
    option=${current%%=*}
    word=${current#*=}
  fi
  if [[ -n $option ]]; then
    values=$(_ration_values "$verb" "$option")
    if [[ $values == file* ]]; then
      _ration_files "$word" "${values#file}"
    else
      mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
    fi
    # Where the sign splits no words, a completion is a whole word.
    [[ $word == "$current" || ${COMP_WORDS[COMP_CWORD]} != "$current" ]] || COMPREPLY=("${COMPREPLY[@]/#/$option=}")
  elif [[ $verb == help ]]; then
    ((last > 1)) || mapfile -t COMPREPLY < <(compgen -W "@VERBS@" -- "$current")
  elif [[ $current == -* || -z $runs$files$targets || (-n $targets && -n $given) ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [[ -n $runs ]]; then
    _ration_command "${places[last]}"
  elif [[ -n $files ]]; then
    _ration_files "$current"
  else
    _ration_targets
  fi
}

complete -F _ration ration
"""


def bash(command):
    options, values = [], []
    for verb in command["verbs"]:
        kinds = {"runs": runs_command(verb), "behind": verb["command_begins"] and not runs_command(verb), "files": takes_files(verb),
                 "targets": takes_targets(verb)}
        kind = " ".join(f"{name}=yes" for name, holds in kinds.items() if holds)
        valued = " ".join(names_of(each for each in verb["options"] if takes_word(each)))
        names = " ".join(names_of(verb["options"]))
        options.append(f"    {verb['name']})\n      options='{names}'\n      valued='{valued}'"
                       + (f"\n      {kind}" if kind else "") + "\n      ;;")
        for option in verb["options"]:
            listed = " ".join(["file"] * takes_file(option) + words_of(option))
            if listed:
                values += [(f"{verb['name']}:{name}", f"echo '{listed}'") for name in option["names"]]
    text = BASH.replace("@OPTIONS@", "\n".join(options)).replace("@VALUES@", "\n".join(cases(values, "    ")))
    text = text.replace("@VERBS@", " ".join(verb["name"] for verb in command["verbs"]))
    return NOTE + "\n" + text.replace("@OWN@", " ".join(names_of(command["options"])))
