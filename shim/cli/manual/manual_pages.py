"""Manual pages in the man(7) language, from the description of the command."""
import re
import textwrap

COLUMNS = 78
WORDS = re.compile(r"[a-z0-9-]+")  # a choice, where it is no placeholder
PARTS = re.compile(r"`([^`]*)`")


def literal(text):
    """Text that is typed as it stands: every hyphen is one, every quote straight."""
    for character, escape in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti")):
        text = text.replace(character, escape)
    return text


def bold(text):
    return f"\\fB{literal(text)}\\fP"


def prose(text):
    """Text with `code`. Hyphens within plain words stay hyphens; those of options are literal."""
    def word(match):
        found = match.group()
        return found if re.fullmatch(r"\W*[A-Za-z]+(-[A-Za-z]+)+\W*", found) else found.replace("-", "\\-")

    parts = PARTS.split(text)
    return "".join(bold(part) if number % 2 else re.sub(r"\S+", word, part.replace("\\", "\\e"))
                   for number, part in enumerate(parts))


def filled(text):
    """Lines of a paragraph; none begins as a request does."""
    lines = textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False)
    return ["\\&" + line if line[0] in ".'" else line for line in lines]


def entry(term, text):
    return [".TP", term, *filled(text)]


def value_text(value):
    return "|".join(bold(part) if WORDS.fullmatch(part) else f"\\fI{literal(part)}\\fP" for part in value.split("|"))


def option_term(option):
    """-o, --output FILE"""
    term = ", ".join(map(bold, option["names"]))
    if option["placeholder"] is None:
        return term
    if option["value_is_optional"]:  # [=LIMIT], [FILE]
        sign = "[=" if option["placeholder"].startswith("[=") else " ["
        return f"{term}{sign}\\fI{literal(option['placeholder'].strip('[]='))}\\fP]"
    return f"{term} {value_text(option['placeholder'])}" + (" ..." if option["repeats"] else "")


def option_entry(option, settings):
    text = prose(option["text"]) + "."
    setting = settings.get(option["names"][-1])
    if setting:
        text += prose(f" Default: {setting['default']}. Variable: `{setting['variable']}`.")
    if option["required"]:
        text += " Required."
    if option["excludes"]:
        text += f" Not together with {', '.join(map(bold, option['excludes']))}."
    return entry(option_term(option), text)


def synopsis(verb):
    """One line of output; the macros' arguments alternate between fonts."""
    lines = [f".B ration {literal(verb['name'])}"]
    lines += [".RI [ OPTIONS ]"] if verb["options"] else []
    if verb["command_begins"] == "first word" and verb["name"] != "env":
        return lines + [".RB [ \\-\\- ]", ".I COMMAND", ".RI [ ARGUMENTS ...]"]
    if verb["command_begins"]:
        return lines + [".RB [ \\-\\-", ".IR COMMAND ...]"]
    for argument in verb["arguments"]:
        more = "..." if argument["repeats"] else ""
        if argument["required"]:
            lines.append(f".IR {argument['name']} {more}".rstrip())
        else:
            lines.append(f".RI [ {argument['name']} ]{more}")
    return lines


def columns(line):
    """(what stands in front of a gap, what stands behind it)"""
    front, _, behind = re.sub(r"\s{2,}", "\t", line.strip()).partition("\t")
    return front, behind


def description(paragraph):
    """A paragraph of a footer; its indented lines are a list in two columns."""
    lines, text = [], []
    for line in paragraph.splitlines():
        if line.startswith("  "):
            lines += [".PP", *filled(prose(" ".join(text)))] if text else []
            text = []
            lines += entry(bold(columns(line)[0]), prose(columns(line)[1]))
        else:
            text.append(line)
    return lines + ([".PP", *filled(prose(" ".join(text)))] if text else [])


def example(line):
    command, comment = columns(line)
    return entry(bold(command), prose(comment)) if comment else [".PP", bold(command)]


def exit_status(text):
    """`0 found; 2 a bad option.`: a list. A first part without a number is the command's own status."""
    text, _, after = text.partition(". ")
    lines = []
    for part in text.rstrip(".").split("; "):
        number, meaning = re.fullmatch(r"((?:\d+(?:\+N)?(?:(?:, | to )\d+)?)?) ?(.*)", part, re.S).groups()
        if number:
            lines += entry(bold(number), prose(meaning or "success") + ".")
        else:
            lines += filled(prose(f"{part[0].upper()}{part[1:]}, or:"))
    return lines + ([".PP", *filled(prose(after))] if after else [])


def sections_of(footer):
    """(paragraphs, lines of examples, exit status)"""
    paragraphs, examples, status = [], [], ""
    for paragraph in footer.split("\n\n"):
        first, _, rest = paragraph.partition("\n")
        if first == "Examples:":
            examples = rest.splitlines()
        elif paragraph.startswith("Exit status: "):
            status = " ".join(paragraph.removeprefix("Exit status: ").split())
        else:
            paragraphs.append(paragraph)
    return paragraphs, examples, status


def section(name, lines):
    """Its heading begins a paragraph."""
    return [f".SH {name}", *lines[lines[0] == ".PP":]] if lines else []


def see_also(names):
    return [f".BR {literal(name)} ({number})," for name, number in names[:-1]] + [f".BR {literal(names[-1][0])} ({names[-1][1]})"]


def title(name, heading):
    return ['.\\" Generated by write_manual.py from what the command says of itself.', f".TH {literal(name.upper())} 1 {heading}", ".nh", ".ad l"]


def verb_page(command, verb, settings, heading):
    name = f"{command['name']}-{verb['name']}"
    paragraphs, examples, status = sections_of(verb["footer"])
    lines = title(name, heading)
    lines += section("NAME", filled(f"{literal(name)} \\- {prose(verb['text'])}"))
    lines += section("SYNOPSIS", synopsis(verb))
    opening = verb["text"][0].upper() + verb["text"][1:] + "."
    lines += section("DESCRIPTION", filled(prose(opening)) + [line for each in paragraphs for line in description(each)])
    lines += section("ARGUMENTS", [line for each in verb["arguments"]
                                   for line in entry(f"\\fI{literal(each['name'])}\\fP", prose(each["text"]) + ".")])
    of_command = {} if verb["name"] == "set" else settings  # its options change what runs, and have no variables
    lines += section("OPTIONS", [line for each in verb["options"] for line in option_entry(each, of_command)])
    lines += section("EXAMPLES", [line for each in examples for line in example(each)])
    lines += section("EXIT STATUS", exit_status(status))
    others = sorted(f"{command['name']}-{other['name']}" for other in command["verbs"] if other is not verb)
    lines += section("SEE ALSO", see_also([(command["name"], 1), *((other, 1) for other in others)]))
    return "\n".join(lines) + "\n"


def environment(settings):
    lines = []
    for each in settings:
        where = [bold(each["variable"])] + ([bold(each["flag"])] if each["flag"] else [])
        where += [f"\\(dq{literal(each['key'])}\\(dq"] if each["scope"] != "kVariable" else []
        lines += entry(", ".join(where), prose(f"{each['text']}.")) + [".br"]
        lines += filled(prose(f"Values: {each['values']}. Default: {each['default']}."))
    return lines


def main_page(command, settings, template, system_folder):
    """ration.1: the template, with its marks replaced. Its first line of comment is no part of the page."""
    verbs = command["verbs"]
    status = []
    for verb in verbs:
        status += entry(bold(f"{command['name']} {verb['name']}"), prose(sections_of(verb["footer"])[2]))
    parts = {
        "synopsis": [line for verb in verbs for line in synopsis(verb) + [".br"]][:-1],
        "verbs": [line for verb in verbs for line in entry(bold(verb["name"]), prose(verb["text"]) + ".")],
        "options": [line for each in command["options"] for line in option_entry(each, {})],
        "environment": environment(settings),
        "exit status": status,
        "examples": [line for each in sections_of(command["footer"])[1] for line in example(each)],
        "see also": see_also([(f"{command['name']}-{name}", 1) for name in sorted(verb["name"] for verb in verbs)]
                             + [("nvidia-smi", 1), ("ld.so", 8)]),
    }
    text = re.sub(r'^\.\\" (' + "|".join(parts) + ")$", lambda mark: "\n".join(parts[mark.group(1)]), template, flags=re.M)
    return text.replace("@SYSTEM_FOLDER@", literal(system_folder)).replace("@VERSION@", command["version"])
