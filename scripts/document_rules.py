"""House rules for documents (*.md): line lengths, document lengths, and that what they name exists."""
import pathlib
import posixpath
import re

COLUMNS = 100
# (files, most lines)
LONGEST = [(r"^README\.md$", 130), (r"^CHANGELOG\.md$", 120), (r"^shim/KNOWN_GAPS\.md$", 120),
           (r"^shim/README\.md$", 200), (r"^tests/README\.md$", 150),
           (r"^shim/design/.*\.md$", 150), (r"^shim/policy/block_pool/README\.md$", 70)]
# A design note's headings are the choices that it explains; code cites each: `design/NOTE.md#HEADING`.
NOTE = re.compile(r"^shim/(design/[a-z-]+\.md)$")
CITATION = re.compile(r"\bdesign/[a-z-]+\.md#[a-z0-9_-]+")
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


def anchors(text):
    """Of each heading, as Markdown's renderers make them."""
    headings = re.findall(r"^#+ (.+)$", outside_code(text), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_anchors(texts):
    """`texts`: {path: text} of the tree. Anchors in links and citations that lead nowhere, and choices that no code cites."""
    problems, cited = [], set()
    known = {path: anchors(text) for path, text in texts.items() if path.endswith(".md")}
    for path, text in texts.items():
        folder = posixpath.dirname(path)
        found = [] if not path.endswith(".md") else [
            (posixpath.normpath(posixpath.join(folder, file)) if file else path, anchor)
            for file, mark, anchor in (link.partition("#") for link in LINK.findall(outside_code(text))) if mark and "://" not in file]
        if re.search(r"^(pool|config|shim)/.*\.(h|cc)$", path):
            found += [("shim/" + file, anchor) for file, _, anchor in (each.partition("#") for each in CITATION.findall(text))]
            cited.update(found)
        problems += [f"{path}: {file} has no heading #{anchor}" for file, anchor in found
                     if file in known and anchor not in known[file] or file not in texts and NOTE.match(file)]
    for path, headings in known.items():
        if NOTE.match(path):
            choices = headings - anchors(texts[path].partition("\n")[0])
            problems += [f"{path}: no code cites #{anchor}" for anchor in sorted(choices) if (path, anchor) not in cited]
    return problems


def check_functions(texts):
    """Functions that documents name, `NAME(...)`, and no code has. CUDA's have a form of their own."""
    words = set()
    for path, text in texts.items():
        if not path.endswith(".md"):
            words.update(re.findall(r"\w+", text))
    return [f"{path}: names {name}(), which does not exist" for path, text in texts.items() if path.endswith(".md")
            for name in re.findall(r"`[\w:.]*?(\w+)\([^`]*`", outside_code(text)) if name not in words and not name.startswith("cu")]


# What prose counts: the table with a row for each.
COUNTED = {"hooks": ("shim/hook_table.inc", r"^RATION_(?:NVML_)?HOOK\("), "settings": ("config/options.inc", r"^RATION_OPTION\("),
           "verbs": ("shim/cli/verb_options.cc", r"^  add\(\""), "findings": ("shim/cli/doctor/findings.inc", r"^RATION_FINDING\(")}
WORDS = dict(zip("two three four five six seven eight nine ten eleven twelve".split(), range(2, 13)))
NUMBER = re.compile(rf"\b(\d+|{'|'.join(WORDS)}) ({'|'.join(COUNTED)}|(?<=\d\d )tests)\b", re.I)


def check_numbers(texts):
    """Numbers in prose that are not those of the tables; only the build knows how many tests there are."""
    problems = []
    for path, text in texts.items():
        for count, what in NUMBER.findall(" ".join(line for _, line in prose_lines(text))) if path.endswith(".md") else []:
            file, row = COUNTED.get(what.lower(), ("", ""))
            if not file or int(WORDS.get(count.lower(), count)) != len(re.findall(row, texts[file], flags=re.M)):
                problems.append(f"{path}: says {count} {what}: leave the number out, or write that of {file or 'the build'}")
    return problems


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
        ("shim/design/a.md", "line\n" * 151, True),
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
    note, citing = "# Pools\n\n## Charge first, grow later\n", {"shim/a.h": "// Design: design/pools.md#charge-first-grow-later\n"}
    trees = [
        ({"shim/design/pools.md": note, **citing}, False),
        ({"shim/design/pools.md": note}, True),
        ({"shim/design/pools.md": note + "\n## More\n", **citing}, True),
        ({"shim/design/pools.md": "# Pools\n", **citing}, True),
        (citing, True),
        ({"README.md": "# A\n\n## To `use`\n[](#to-use) [](b.md#a) [](a.py#x)\n", "b.md": "# A\n"}, False),
        ({"README.md": "# A\n[](b.md#b)\n", "b.md": "# A\n"}, True),
        ({"README.md": "# A\n[](#b)\n"}, True),
    ]
    trees += [({"README.md": "`Pool::grow(bytes)` and `cuMemAlloc()`\n", "pool/a.h": "int grow();\n"}, False),
              ({"README.md": "`Pool::shrink()`\n", "pool/a.h": "int grow();\n"}, True)]
    settings = {"config/options.inc": "RATION_OPTION(limit,\nRATION_OPTION(mode,\n"}
    trees += [({"README.md": "It has two settings.\n| 3 settings |\n", **settings}, False), ({"README.md": "It has\n3 settings.\n", **settings}, True),
              ({"README.md": "200 tests run.\n"}, True)]
    wrong += [f"self-test: {tree}: {'accepted' if refused else 'refused'}" for tree, refused in trees
              if bool(check_anchors(tree) + check_functions(tree) + check_numbers(tree)) != refused]
    return wrong, len(cases) + len(trees)
