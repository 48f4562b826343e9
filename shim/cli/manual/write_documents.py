#!/usr/bin/env python3
"""Writes the documents that are installed, with links only to what is installed with them.

write_documents.py SOURCE FOLDER
"""
import pathlib
import posixpath
import re
import sys

# What share/doc/ration has: its path in the repository, and its name there.
DOCUMENTS = {"README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "LICENSE": "LICENSE", "shim/KNOWN_GAPS.md": "KNOWN_GAPS.md",
             "shim/cli/README.md": "JSON.md", "shim/events/README.md": "LOG.md", "config/README.md": "SETTINGS.md",
             "scripts/package/README.md": "PACKAGES.md", "examples/share_one_gpu/picture-light.svg": "picture-light.svg",
             "examples/share_one_gpu/picture-dark.svg": "picture-dark.svg"}
SCHEMAS = {path: f"../../ration/{path.rsplit('/', maxsplit=1)[-1]}"
           for path in ("config/schema.json", "shim/events/log.schema.json", "shim/cli/verbs.schema.json")}
# What only those who change Ration need.
OF_DEVELOPERS = {"config/README.md": (r"(?<=\n)`options\.inc` is the only list.*?(?=## Settings\n)",),
                 "shim/cli/README.md": (r"Each verb has its own source file.*?`\.\./logs/`\.\s", r"\sA new finding\sneeds a row there.*?doctor/`\.")}
REASON = re.compile(r" \(\[why\]\([^()]*\)\)")
LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
PICTURE = re.compile(r'\b(src|srcset)="([^"]+)"')


def installed_path(document, target):
    """The link's path in the folder of documents; None if what it leads to is not there."""
    if re.match(r"[a-z]+:", target):
        return target
    return (DOCUMENTS | SCHEMAS).get(posixpath.normpath(posixpath.join(posixpath.dirname(document), target)))


def rewritten(document, text):
    def link(found):
        words, target, anchor = found.groups()
        path = installed_path(document, target)
        return words if path is None else f"[{words}]({path}{anchor or ''})"

    for part in OF_DEVELOPERS.get(document, ()):
        text, count = re.subn(part, "", text, flags=re.DOTALL)
        if count != 1:
            sys.exit(f"{document}: {part} is there {count} times")
    text = LINK.sub(link, REASON.sub("", text))
    return PICTURE.sub(lambda found: f'{found[1]}="{installed_path(document, found[2]) or found[2]}"', text)


def write(source, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for document, name in DOCUMENTS.items():
        text = (source / document).read_text(encoding="utf-8")
        (folder / name).write_text(rewritten(document, text) if name.endswith(".md") else text, encoding="utf-8")


if __name__ == "__main__":
    write(*map(pathlib.Path, sys.argv[1:]))
