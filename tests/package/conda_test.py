#!/usr/bin/env python3
"""The recipe of the conda package, rendered and built by rattler-build itself: conda_test.py BUILD

What the recipe needs is in conda's channels, which tests do without: the package is of BUILD, and everything else of the recipe
as it is, from the script to the tests in an environment of their own.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import tree
from tree import SOURCE, expect, run

BUILD = pathlib.Path(sys.argv[1]).resolve()
RECIPE = SOURCE / "scripts/package/conda/recipe.yaml"
INSIDE = "with_its_packages"
# The configuration runs: it finds what the script put in place for it.
STAND_IN = """#!/bin/sh
case $1 in
--build) exit 0 ;;
--install) exec {cmake} --install {build} --prefix "$4" ;;
esac
exec {cmake} "$@"
"""


def rendered(platform):
    import rattler_build
    variants = rattler_build.VariantConfig.from_file(RECIPE.parent / "variants.yaml")
    place = rattler_build.PlatformConfig(target_platform=platform, build_platform=platform, host_platform=platform)
    return [each.recipe.to_dict() for each in
            rattler_build.Stage0Recipe.from_file(RECIPE).render(variants, rattler_build.RenderConfig(platform=place))]


def renders(_):
    """For both machines, with what the tree says of itself."""
    version = re.search(r"^project\(ration VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    for platform in ("linux-64", "linux-aarch64"):
        recipes = rendered(platform)
        expect(f"{platform}: packages", [(each["package"]["name"], each["package"]["version"]) for each in recipes], [("ration", version)])
        tools = recipes[0]["requirements"]["build"]
        expect(f"{platform}: compilers", tools[:3], [f"gcc_{platform}", f"gxx_{platform}", f"sysroot_{platform} 2.28.*"])
        for file in recipes[0]["about"]["license_file"]:
            expect(f"{file} is there", (SOURCE / file).is_file(), True)
    needed = re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    expect("cmake", f"cmake >={needed}" in tools, True)


def builds(folder):
    import rattler_build
    (folder / "tools").mkdir()
    stand_in = folder / "tools/cmake"
    stand_in.write_text(STAND_IN.format(cmake=shutil.which("cmake"), build=BUILD))
    stand_in.chmod(0o755)
    os.environ["PATH"] = f"{folder}/tools:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    recipe = rattler_build.Stage0Recipe.from_file(RECIPE).to_dict()
    del recipe["requirements"]
    recipe["source"] = [{"path": str(SOURCE)}]
    try:
        made = rattler_build.Stage0Recipe.from_dict(recipe, recipe_dir=folder / "recipe").run_build(
            tool_config=rattler_build.ToolConfiguration(test_strategy="native"), output_dir=folder / "made", channels=[],
            package_format="tar-bz2", env_isolation=rattler_build.EnvironmentIsolation.NONE)
    except rattler_build.RattlerBuildError as error:
        raise tree.Failed(f"{error}: {(folder / 'made/rattler-build-log.txt').read_text()[-3000:]}") from error
    package = pathlib.Path(made[0].packages[0])
    expect("its name", package.name.startswith("ration-") and package.name.endswith(".tar.bz2"), True)
    content = folder / "content"
    with tarfile.open(package) as files:
        files.extractall(content)
    for library in sorted((content / "lib").rglob("*.so*")):
        expect(f"the run path of {library.name}", re.findall("R(?:UN)?PATH", run("readelf", "-d", library)), [])
    expect("limited, wherever it is", tree.limited(content / "bin/ration"), f"{2 << 30}\n")


def main():
    if sys.argv[2:] == [INSIDE]:
        tree.main(renders, builds)
    try:
        interpreter = tree.python(BUILD)
    except tree.Skipped as why:
        print(f"skipped: {why}")
        return 77
    return subprocess.run([interpreter, __file__, BUILD, INSIDE], check=False).returncode


sys.exit(main())
