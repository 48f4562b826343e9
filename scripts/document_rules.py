"""House rules for documents (*.md): line lengths, document lengths, and that what they name exists."""
import pathlib
import posixpath
import re

COLUMNS = 100
# (files, most lines); a decision record also has the three parts of its form
LONGEST = [(r"^README\.md$", 130), (r"^shim/README\.md$", 200), (r"^tests/README\.md$", 150),
           (r"^shim/decisions/\d+-.*\.md$", 29), (r"^shim/policy/block_pool/README\.md$", 70)]
RECORD = r"^shim/decisions/\d.*\.md$"
RECORD_FORM = re.compile(r"# \d{3} [^\n]+\n\nTopic: [^\n]+\n\n\*\*Context\.\*\* .+\n\n\*\*Decision\.\*\* .+\n\n\*\*Consequence\.\*\* .+\n", re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:\.\./)*[\w.-]+(?:/[\w.-]+)*\.(?:h|cc|S|inc|py|sh|md|txt|json|map|cmake))`")
NOT_OURS = re.compile(r"(^|/)(cu\w*|nvml)\.h$|NAME|^build|\.jsonl?$")  # headers of NVIDIA, placeholders, products
# The lists of stations: a heading's first word, and how many files its list names. To be lowered.
WALK = r"^shim/policy/block_pool/README\.md$"
MOST_FILES = {"Hit": 11, "Miss": 18, "Free": 10}
STATION = re.compile(r"`([\w/]+\.(?:h|cc))`((?: `\w+`)+)")


def check_walk(path, text, read):
    """The problems of a list of stations. `read(file)`: the text of a file of the tree, by its path in it."""
    problems = []
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        files, heading = set(), section.partition(":")[0]
        for file, names in STATION.findall(section):
            files.add(file)
            code = read(file if file.startswith("pool/") else "shim/" + file)
            problems += [f"{path}: {name} is not in {file}" for name in re.findall(r"\w+", names)
                         if not re.search(rf"\b{name}\(", code)]
        if len(files) != MOST_FILES.get(heading):
            problems.append(f"{path}: {heading} crosses {len(files)} files, not {MOST_FILES.get(heading)}: lower the number, "
                            "or shorten the way")
    return problems


def prose_lines(text):
    """(number, line) of each line outside code blocks and tables."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    ") and not line.lstrip().startswith(("|", "<!--")):
            yield number, line


def outside_code(text):
    """The text with its fenced blocks emptied, line numbers kept."""
    return re.sub(r"^ *```.*?^ *```", lambda block: "\n" * block.group().count("\n"), text, flags=re.M | re.S)


def exists(name, folder, known):
    """A bare file name may be that of any file; a path starts at the document, the top, shim/ or tests/."""
    if "/" not in name:
        return any(posixpath.basename(path) == name for path in known)
    return any(posixpath.normpath(posixpath.join(base, name)) in known for base in (folder, "", "shim", "tests"))


def check_document(path, text, files):
    """The problems of one document. `files`: every path of the tree."""
    problems, folder = [], posixpath.dirname(path)
    for number, line in prose_lines(text):
        if len(line) > COLUMNS and " " in line.strip()[:COLUMNS]:  # a link alone may be longer
            problems.append(f"{path}:{number}: longer than {COLUMNS} columns")
    for pattern, most in LONGEST:
        if re.search(pattern, path) and text.count("\n") > most:
            problems.append(f"{path}: longer than {most} lines")
    if re.search(RECORD, path) and not RECORD_FORM.fullmatch(text):
        problems.append(f"{path}: a record has a numbered title, Topic, Context, Decision and Consequence")
    known = set(files) | {str(parent) for file in files for parent in pathlib.PurePosixPath(file).parents}
    read = outside_code(text)
    for match in LINK.finditer(read):
        target = match.group(1).partition("#")[0]
        if target and "://" not in target and posixpath.normpath(posixpath.join(folder, target)) not in known:
            problems.append(f"{path}:{read.count(chr(10), 0, match.start()) + 1}: link to {target}, which does not exist")
    for match in NAMED.finditer(read):
        if not NOT_OURS.search(match.group(1)) and not exists(match.group(1), folder, known):
            problems.append(f"{path}:{read.count(chr(10), 0, match.start()) + 1}: names {match.group(1)}, which does not exist")
    return problems


def self_test():
    """Each case: a document's path and text; True: the check must refuse it."""
    files = ["README.md", "shim/README.md", "shim/hooks/device.cc", "tests/unit/pool/pool_test.cc"]
    record = "# 001 A title\n\nTopic: a\n\n**Context.** a\n\n**Decision.** b\n\n**Consequence.** c\n"
    long_word = "x" * COLUMNS
    cases = [
        ("README.md", "words " + long_word + "\n", True),
        ("README.md", "```\nwords " + long_word + "\n```\n", False),
        ("README.md", "| words " + long_word + " |\n", False),
        ("README.md", "[](htt" + f"p://{long_word})\n", False),
        ("README.md", "line\n" * 130, False),
        ("README.md", "line\n" * 131, True),
        ("shim/README.md", "line\n" * 201, True),
        ("tests/README.md", "line\n" * 151, True),
        ("shim/decisions/001-a.md", record, False),
        ("shim/decisions/001-a.md", record.replace("**Decision.** b\n\n", ""), True),
        ("shim/decisions/001-a.md", record + "line\n" * 29, True),
        ("README.md", "[it](shim/README.md)\n", False),
        ("README.md", "[it](shim)\n", False),
        ("shim/README.md", "[it](hooks/device.cc#anchor)\n", False),
        ("README.md", "[it](shim/missing.md)\n", True),
        ("README.md", "see `shim/hooks/device.cc`\n", False),
        ("README.md", "see `hooks/device.cc`, `pool_test.cc`\n", False),
        ("README.md", "see `hooks/missing.cc`\n", True),
        ("README.md", "see `missing.cc`\n", True),
        ("README.md", "```\n`hooks/missing.cc`\n```\n", False),
        ("README.md", "`cuda.h` and `hooks/NAME.cc`\n", False),
    ]
    wrong = [f"self-test: {path} with {text[:40]!r}: {'accepted' if refused else 'refused'}"
             for path, text, refused in cases if bool(check_document(path, text, files)) != refused]
    return wrong, len(cases)
