#!/usr/bin/env python3
"""Checks house rules that a pattern can find, in the files that git tracks or would add.

check_rules.py                checks the tree
check_rules.py --self-test    proves that each rule can fail
"""
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree is only read
import class_rules  # noqa: E402
import document_rules  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = r"\.(h|cc|c|S|inc)$"
NOT_CLI = r"^shim/(?!cli/|logs/)"

# (name, files that it applies to, exceptions, what must not occur)
RULES = [
    ("unfinished", r".", r"^scripts/check_rules\.py$", r"\b(TODO|FIXME|XXX|HACK)\b|\bfor now\b"),
    ("stdout", NOT_CLI + r".*" + CODE, None, r"(?<![\w.>])(printf|puts|putchar|vprintf)\s*\(|\bstd::cout\b|\bstdout\b"),
    ("ends the program", NOT_CLI + r".*" + CODE, None,
     r"(?<![\w.>])(std::)?(exit|_exit|quick_exit|abort|terminate)\s*\("),
    ("signal handler or umask", NOT_CLI + r".*" + CODE, None, r"(?<![\w.>])(sigaction|signal|umask)\s*\("),
    ("environment", r"^(pool|config|shim)/.*" + CODE, r"^(config|shim/preload)/", r"\b(secure_)?getenv\s*\(|(?<![\w/])environ\b"),
    ("sleeps in a test", r"^tests/(unit|preload|multiproc|fuzz)/.*\.(cc|h|c)$", None,
     r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\("),
    ("waits without shim/base/wait.h", r"^(pool|config|shim)/.*" + CODE, r"^shim/base/|^pool/lock\.cc$",
     r"\bsched_yield\b|\bthis_thread::yield\b"),
    ("owning callback", r"^shim/(policy|hooks)/.*" + CODE, None, r"\bstd::(move_only_)?function\b"),
    ("path of one machine", r".", r"^scripts/check_rules\.py$",
     r"(?<![\w.])" + re.escape(str(ROOT)) + r"\b|(?<![\w.])/(home|Users|root)/\w"),
    ("host in a build file", r"(\.sh|\.py|\.cmake|CMakeLists\.txt|requirements\.txt|\.json)$|^\.ci/", r"^scripts/check_rules\.py$",
     r"https?://(?!json-schema\.org/|www\.w3\.org/)|--(extra-)?index-url"),  # names of schemas, never fetched
]
EMPTY_NAMES = re.compile(r"(^|_)(utils?|common|helpers?|manager|info|misc|data)(_|$)")
LINES_AT_MOST = 600


def strip_comments(text):
    """The code without its comments; strings and line numbers stay."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def check_text(path, text):
    problems = []
    for name, files, but, pattern in RULES:
        if not re.search(files, path) or (but and re.search(but, path)):
            continue
        is_about_code = name not in ("unfinished", "path of one machine", "host in a build file")
        searched = strip_comments(text) if is_about_code else text
        for match in re.finditer(pattern, searched):
            line = searched.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{line}: {name}: {match.group()!r}")
    if re.search(CODE, path) and text.count("\n") > LINES_AT_MOST:
        problems.append(f"{path}: longer than {LINES_AT_MOST} lines")
    return problems + check_names(path)


def check_names(path):
    if not re.search(CODE + r"|\.py$|\.sh$", path):
        return []
    parts = [pathlib.PurePosixPath(part).stem for part in path.split("/")]
    return [f"{path}: name without a meaning: {part}" for part in parts if EMPTY_NAMES.search(part)]


def tracked_files():
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout
    return sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})


def check_tree():
    problems, texts, files = [], {}, tracked_files()
    for path in files:
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            problems.append(f"{path}: not a text file: generated files are built, not committed")
            continue
        texts[path] = text
        problems += check_text(path, text) + class_rules.check_header(path, text) + class_rules.check_source(path, text, files)
        if path.endswith(".md"):
            problems += document_rules.check_document(path, text, files)
        if re.search(document_rules.WALK, path):
            problems += document_rules.check_walk(path, text, lambda file: (ROOT / file).read_text() if file in files else "")
    return problems + document_rules.check_anchors(texts) + document_rules.check_functions(texts) + document_rules.check_numbers(texts), len(texts)


def self_test():
    cases = [
        ("pool/a.cc", "// TO" + "DO: later\n", True),
        ("shim/hooks/a.cc", 'printf("x");\n', True),
        ("shim/hooks/a.cc", 'snprintf(b, n, "x");\n', False),
        ("shim/cli/a.cc", 'printf("x");\n', False),
        ("shim/runtime/a.cc", "std::abort();\n", True),
        ("shim/runtime/a.cc", "// the program may exit() here\n", False),
        ("shim/runtime/a.cc", "umask(0);\n", True),
        ("shim/ledger/a.cc", 'getenv("A");\n', True),
        ("config/a.cc", 'getenv("A");\n', False),
        ("tests/unit/pool/a_test.cc", "sleep(1);\n", True),
        ("shim/policy/calls/a.h", "std::function<void()> act;\n", True),
        ("shim/hooks/a.cc", "// no std::function here\n", False),
        ("shim/runtime/a.h", "std::function<void()> act;\n", False),
        ("shim/policy/a.cc", "sched_yield();\n", True),
        ("pool/a.cc", "std::this_thread::yield();\n", True),
        ("shim/base/wait.cc", "sched_yield();\n", False),
        ("pool/lock.cc", "sched_yield();\n", False),
        ("README.md", f"see {ROOT}/x\n", True),
        ("scripts/a.sh", "curl http" + "s://example.org\n", True),
        ("shim/policy/pool_utils.h", "\n", True),
        ("pool/a.h", "\n" * (LINES_AT_MOST + 1), True),
        ("pool/a.h", "int f();\n", False),
    ]
    wrong = [f"self-test: {path} with {text[:40]!r}: {'accepted' if refused else 'refused'}"
             for path, text, refused in cases if bool(check_text(path, text)) != refused]
    wrong_documents, documents = document_rules.self_test()
    wrong_classes, classes = class_rules.self_test()
    return wrong + wrong_documents + wrong_classes, len(cases) + documents + classes


def main():
    problems, seen = self_test() if sys.argv[1:] == ["--self-test"] else check_tree()
    print("\n".join(problems + [f"rules: {seen} files checked, {len(problems)} findings"]))
    return 1 if problems or not seen else 0


sys.exit(main())
