#!/usr/bin/env python3
"""Writes the manual pages and the completions of shells: write_manual.py DESCRIPTION TEMPLATE SHARE SYSTEM_FOLDER VERSION

DESCRIPTION is what `ration --describe` prints, TEMPLATE the frame of ration.1, SHARE the folder share/ to write to.
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True  # the source tree is only read
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
import bash_completion  # noqa: E402
import fish_completion  # noqa: E402
import manual_pages  # noqa: E402
import tables  # noqa: E402
import zsh_completion  # noqa: E402

SHELLS = {"bash-completion/completions/ration": bash_completion.bash,
          "zsh/site-functions/_ration": zsh_completion.zsh,
          "fish/vendor_completions.d/ration.fish": fish_completion.fish}


def pages(command, template, system_folder):
    """File name -> text."""
    settings = list(tables.options())
    by_flag = {each["flag"]: each for each in settings if each["flag"]}
    text = manual_pages.main_page(command, settings, template, system_folder)
    heading = next(line for line in text.splitlines() if line.startswith(".TH ")).removeprefix(".TH RATION 1 ")
    return {"ration.1": text} | {f"ration-{verb['name']}.1": manual_pages.verb_page(command, verb, by_flag, heading)
                                 for verb in command["verbs"]}


def main():
    description, template, share = map(pathlib.Path, sys.argv[1:4])
    command = json.loads(description.read_text(encoding="utf-8"))
    if command["version"] != sys.argv[5]:
        sys.exit(f"write_manual: the command describes {command['version']}, and this is {sys.argv[5]}: build another")
    files = {f"man/man1/{name}": text for name, text in pages(command, template.read_text(encoding="utf-8"), sys.argv[4]).items()}
    files |= {name: write(command) for name, write in SHELLS.items()}
    for old in share.glob("man/man1/ration*.1"):  # of verbs that are gone
        if f"man/man1/{old.name}" not in files:
            old.unlink()
    for name, text in files.items():
        path = share / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
