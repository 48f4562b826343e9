#!/usr/bin/env python3
"""Rules and commands of every kind: `ration env -- COMMAND` shows the settings that the process under `ration run` has."""
import json
import pathlib
import subprocess

from harness import BUILD, PROGRAMS, clean_environment, expect, main

KNOBS = (PROGRAMS / "knobs").resolve()
SCRIPTS = {  # its text, and the words that the interpreter puts before the script's own
    "by_path": (f"#!{KNOBS}\n", f"{KNOBS} "),
    "by_path_with_words": (f"#! {KNOBS}  one two \n", f"{KNOBS} one two "),
    "by_env": ("#!/usr/bin/env knobs_alias\n", "knobs_alias "),
    "by_env_with_words": ("#!/usr/bin/env -S A=1 knobs_alias one  B=2\n", "knobs_alias one B=2 "),
    "by_script": ("#!FOLDER/by_path_with_words\n", f"{KNOBS} one two FOLDER/by_path_with_words "),
}


def files(folder):
    (folder / "knobs_alias").symlink_to(KNOBS)
    for name, (text, _) in SCRIPTS.items():
        path = folder / name
        path.write_text(text.replace("FOLDER", str(folder)))
        path.chmod(0o755)


def said_of(command, folder, rules):
    """The limit and its source: from `ration env`, and from the log of the process."""
    (folder / "ration").mkdir(exist_ok=True)
    (folder / "ration/config.json").write_text(json.dumps({"limit": "1GiB", "rules": rules}))
    log = folder / "run.jsonl"
    environment = clean_environment() | {"XDG_CONFIG_HOME": str(folder), "RATION_STATE_DIR": f"{folder}/state",
                                         "RATION_LOG": str(log), "PATH": f"{folder}:/usr/bin:/bin"}
    ration = BUILD / "bin/ration"
    reported = subprocess.run([ration, "env", "--json", "--", *command], env=environment, cwd=folder, capture_output=True, text=True, check=False)
    subprocess.run([ration, "run", "--sim", "4GiB", "--", *command], env=environment, cwd=folder, capture_output=True, check=True)
    expected = next(row for row in json.loads(reported.stdout)["settings"] if row["key"] == "limit")
    seen = json.loads(log.read_text().splitlines()[0])["settings"]["limit"]
    log.unlink()
    return (expected["value"], expected["place"]), (seen["value"], seen["place"])


def alike(command, argv):
    def case(scratch):
        folder = pathlib.Path(scratch).resolve()
        files(folder)
        words = [word.replace("FOLDER", str(folder)) for word in command]
        # Two patterns that must not match (a link, more characters than there are), and three exact ones.
        exact = argv.replace("FOLDER", str(folder))
        for limit, match in (("1GiB", {"exe": "*/knobs_alias"}), ("1GiB", {"argv": exact + "?*"}), ("2GiB", {"exe": str(KNOBS)}),
                             ("2GiB", {"argv": exact}), ("2GiB", {"exe": "*/knobs", "argv": exact})):
            env, process = said_of(words, folder, [{"match": match, "limit": "2GiB"}])
            expect(f"{words} under {match}: env and process", env, process)
            expect(f"{words} under {match}", env[0], limit)
    return case


CASES = {
    "a path": ([str(KNOBS)], str(KNOBS)),
    "a link, by name": (["knobs_alias", "x y", "z"], "knobs_alias x y z"),
    "a link, by a path from here": (["./knobs_alias", "x", "z"], "./knobs_alias x z"),
} | {f"a script {name}": ([f"FOLDER/{name}", "1", "x"], f"{front}FOLDER/{name} 1 x") for name, (_, front) in SCRIPTS.items()}

main({name: alike(*case) for name, case in CASES.items()})
