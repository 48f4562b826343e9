"""House rules for classes: how many members, no friends, and one pair of files for each."""
import posixpath
import re

ROOMS = r"^shim/policy/block_pool/.*\.h$"
MOST_MEMBERS = 25
# Classes that had more when the rule came; the numbers are only ever lowered.
LARGER = {"IpcExporter": 30}
# Files that define members of a class after which another file is named; only ever fewer.
PARTS = {"graph_memory_taking", "group_limits"}
CLASS = re.compile(r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?(\w+)[^;{}()]*\{")
NO_MEMBER = ("static_assert", "using ", "typedef", "static constexpr", "enum", "struct ", "class ", "friend ")
DEFINITION = re.compile(r"^(?![ }])[\w:<>,*& \[\]]*?\b(\w+)::~?\w+\(", re.M)


def without_comments(text):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    text = re.sub(r"^\s*#[^\n]*(\\\n[^\n]*)*", "", text, flags=re.M)
    return re.sub(r'"(\\.|[^"\\])*"', '""', text)


def is_member(declaration, name):
    """Whether it declares data or a function, constructors and what is deleted apart."""
    declaration = re.sub(r"\b(public|private|protected)\s*:", "", declaration).strip()
    return (bool(declaration) and not declaration.startswith(NO_MEMBER) and "= delete" not in declaration and
            not re.match(rf"(explicit )?~?{name}\b\s*\(", declaration))


def members_of(code):
    """(name, number of members) of each class of a header without comments."""
    for match in CLASS.finditer(code):
        depth, count, piece = 1, 0, ""
        for place in range(match.end(), len(code)):
            letter = code[place]
            depth += (letter == "{") - (letter == "}")
            if depth == 0:
                break
            is_body_end = letter == "}" and depth == 1 and not code[place + 1:place + 40].lstrip().startswith((";", ",", "{", ")"))
            if (letter == ";" and depth == 1) or is_body_end:
                count, piece = count + is_member(piece, match.group(1)), ""
            elif depth == 1 and letter not in "{}":
                piece += letter
        yield match.group(1), count


def check_header(path, text):
    if not re.search(ROOMS, path):
        return []
    code = without_comments(text)
    problems = [f"{path}: {name} has {count} members, at most {LARGER.get(name, MOST_MEMBERS)}"
                for name, count in members_of(code) if count > LARGER.get(name, MOST_MEMBERS)]
    return problems + [f"{path}: a friend" for _ in re.finditer(r"\bfriend\b", code)]


def check_source(path, text, files):
    """In policy/, a source file defines members of classes of its own."""
    stem = posixpath.basename(path)[:-len(".cc")]
    if not re.search(r"^shim/policy/.*\.cc$", path) or stem in PARTS:
        return []
    names = {posixpath.basename(file) for file in files if file.startswith("shim/policy/")}
    others = set()
    for match in DEFINITION.finditer(without_comments(text)):
        snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", match.group(1)).lower()
        if snake != stem and f"{snake}.h" in names:
            others.add(match.group(1))
    return [f"{path}: defines members of {name}, after which another file is named" for name in sorted(others)]


def self_test():
    many = "class A {\n" + "".join(f"  int f{i}();\n" for i in range(MOST_MEMBERS)) + "%s};\n"
    room, files = "shim/policy/block_pool/a.h", ["shim/policy/calls/block_pools.h"]
    wrong = []
    for text, refused in ((many % "", False), (many % "  int more_ = 0;\n", True), (many % "  A(const A &) = delete;\n", False),
                          (many % "  bool more() const {\n    return true;\n  }\n", True), ("class A {\n  friend class B;\n};\n", True)):
        if bool(check_header(room, text)) != refused:
            wrong.append(f"self-test: {text[-40:]!r}: {'accepted' if refused else 'refused'}")
    for path, refused in (("shim/policy/calls/a.cc", True), ("shim/policy/calls/block_pools.cc", False)):
        if bool(check_source(path, "void BlockPools::free(int a) {}\n", files)) != refused:
            wrong.append(f"self-test: {path}: {'accepted' if refused else 'refused'}")
    return wrong, 7
