"""Completion for zsh, from the description of the command."""
import re

from completed import NOTE, brief, runs_command, takes_file, takes_files, takes_targets, takes_word, words_of


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def escaped(text):
    """Within a specification of zsh's _arguments."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def zsh_option(option):
    """One specification a name; names of one option exclude each other."""
    others = option["excludes"] + (option["names"] if len(option["names"]) > 1 else [])
    exclusive = "(" + " ".join(others) + ")" if others else ""
    if "--help" in option["names"] or "--version" in option["names"]:
        exclusive = "(- *)"
    value = ""
    if option["placeholder"] is not None:
        listed = " ".join(words_of(option))
        action = f"({listed})" if listed else " "
        if takes_file(option):
            action = f"_ration_files_or -- {listed}" if listed else "_files"
        value = f"{'::' if option['value_is_optional'] else ':'}{option['placeholder'].strip('[]=')}:{action}"
    for name in option["names"]:
        sign = "" if not value else "=-" if not takes_word(option) else "=" if name.startswith("--") else "+"
        more = "*" if option["repeats"] else ""
        yield quoted(f"{exclusive}{more}{name}{sign}[{escaped(brief(option['text']))}]{value}")


def zsh_verb(verb):
    specifications = [line for option in verb["options"] for line in zsh_option(option)]
    if runs_command(verb):
        specifications += ["'(-)1: :_command_names -e'", "'*:: :_ration_command'"]
        start = "_arguments -S -A '-*'"
    else:
        start = "_arguments -S"
        if takes_files(verb):
            named = [escaped(each["name"]) for each in verb["arguments"]] or ["FILE"]
            single = verb["arguments"] and not any(each["repeats"] for each in verb["arguments"])
            specifications += [f"'{number if single else '*'}:{name}:_files'" for number, name in enumerate(named, 1)]
        if takes_targets(verb):
            specifications.append(f"'1:{escaped(verb['arguments'][0]['name'])}:_ration_targets'")
    lines = [f"{start} \\", *(f"  {line} \\" for line in specifications), "  && found=0"]
    if verb["command_begins"] and not runs_command(verb):
        lines = ["if ((${words[(i)--]} < CURRENT)); then", "  _ration_behind_dashes && found=0", "else",
                 *(f"  {line}" for line in lines), "fi"]
    return [f"        {verb['name']})", *(f"          {line}" for line in lines), "          ;;"]


ZSH = r"""
# The command that a verb runs completes itself. The mark in front of it counts as a word of it.
_ration_command() {
  if [[ $words[1] == -- ]]; then
    shift words
    ((CURRENT--))
  fi
  _normal
}

# The command that stands after --.
_ration_behind_dashes() {
  local at=${words[(i)--]}
  shift $at words
  ((CURRENT -= at))
  _normal
}

# Files, and the words that _arguments hands on.
_ration_files_or() {
  local found=1
  compadd "$@" && found=0
  _files && found=0
  return found
}

# Groups and processes that run under Ration.
_ration_targets() {
  local -a targets
  targets=(${(f)"$(_call_program targets ration ps --targets 2>/dev/null)"})
  targets=(${${targets//:/\\:}/$'\t'/:})
  _describe -t targets target targets
}

_ration() {
  local curcontext="$curcontext" state line found=1
  local -a verbs
  verbs=(
@VERBS@
  )
  _arguments -C -S \
@OWN@
    '1: :->verb' '*:: :->arguments' && found=0
  case $state in
    verb)
      _describe -t commands verb verbs && found=0
      ;;
    arguments)
      curcontext="${curcontext%:*:*}:ration-$line[1]:"
      # _arguments takes -- for the value of an option that has none.
      local at=${words[(i)--]}
      [[ at -gt CURRENT || $words[at-1] != (@OPTIONAL@) ]] || words[at-1]+='='
      case $line[1] in
@CASES@
        help)
          _arguments '1: :->topic' && found=0
          if [[ $state == topic ]]; then
            _describe -t commands verb verbs && found=0
          fi
          ;;
      esac
      ;;
  esac
  return found
}

_ration "$@"
"""


def zsh(command):
    verbs = [f"    {quoted(escaped(verb['name']) + ':' + verb['text'])}" for verb in command["verbs"]]
    verbs.append("    'help:print the help of a verb'")
    own = [f"    {line} \\" for option in command["options"] for line in zsh_option(option)]
    text = ZSH.replace("@VERBS@", "\n".join(verbs)).replace("@OWN@", "\n".join(own))
    text = text.replace("@CASES@", "\n".join(line for verb in command["verbs"] for line in zsh_verb(verb)))
    optional = {name for verb in command["verbs"] for each in verb["options"] if each["value_is_optional"] for name in each["names"]}
    text = text.replace("@OPTIONAL@", "|".join(sorted(optional)))
    return f"#compdef ration\n{NOTE}\n{text}"
