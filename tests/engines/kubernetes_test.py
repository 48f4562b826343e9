#!/usr/bin/env python3
"""The manifests of examples/kubernetes, without a cluster: schemas, the policies' CEL, and the DaemonSet's scripts.

The policies are evaluated as an API server does it: match conditions, variables, mutations or validations; by two evaluators,
of which one also checks types, where packages of both are offered. Two things are stand-ins: the function quantity(), and the
merge of what the mutation returns into the pod (lists by their keys). Only a cluster shows that its server accepts the policies,
that its merge is the same, and in which order other plug-ins come.
"""
import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time
from fractions import Fraction

from engines import EXAMPLES, GIB, HANG, LIBRARY, RATION, TESTS, Failure, expect, expect_that, main, python, simulated

try:
    import celpy
    import kubernetes_validate
    import yaml
except ImportError:
    if "engines" in pathlib.Path(sys.prefix).name:
        raise
    interpreter = python()
    os.execv(interpreter, [interpreter, *sys.argv])
try:
    from cel_expr_python import cel as checked_cel
except ImportError:  # no package for this machine
    checked_cel = None

sys.path.insert(0, str(TESTS / "preload/group"))
from members import OBEY, Member  # noqa: E402

FOLDER = EXAMPLES / "kubernetes"
MANIFESTS = sorted(FOLDER.glob("*.yaml"))
INSIDE = "/usr/lib/ration/libration.so"
KEYS = {"containers": "name", "initContainers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath"}
SUFFIXES = {"": 1, "m": Fraction(1, 1000), "k": 1000, "M": 1000 ** 2, "G": 1000 ** 3, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def documents(manifest):
    return list(yaml.safe_load_all(manifest.read_text()))


def releases():
    """The two newest that the schemas cover."""
    known = (pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema").iterdir()
    numbers = sorted({tuple(int(part) for part in re.findall(r"\d+", folder.name)[:2]) for folder in known if re.match(r"v?\d", folder.name)})
    return [f"{major}.{minor}" for major, minor in numbers[-2:]]


def fits(document, release):
    try:
        kubernetes_validate.validate(document, release, strict=True)
        return True
    except kubernetes_validate.ValidationError:
        return False


def changed(document, path, key, value=None):
    """A copy with one key renamed, or one value replaced."""
    document = copy.deepcopy(document)
    place = document
    for step in path:
        place = place[step]
    if value is None:
        place[key + "x"] = place.pop(key)
    else:
        place[key] = value
    return document


def quantity(text):
    number, suffix = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", text).groups()
    return Fraction(number) * SUFFIXES[suffix]


def canonical(number):
    """A quantity as the API server hands it on."""
    for suffix in ("G", "M", "k"):
        if number and number % SUFFIXES[suffix] == 0:
            return f"{number // SUFFIXES[suffix]}{suffix}"
    return str(number)


def as_integer(text):
    """An error for a part of one, as the API server's function has it."""
    if quantity(text).denominator != 1:
        raise ValueError(f"{text} is not an integer")
    return int(quantity(text))


class Checked:
    """The other evaluator, which compiles with types. An object's type is not known to it: a map stands for it."""

    def __init__(self, pod):
        kinds = checked_cel.Type
        self.known = {"object": kinds.DYN, "request.namespace": kinds.STRING}
        self.values = {"object": pod, "request.namespace": "team"}
        functions = (("quantity", kinds.STRING, False, lambda text: text), ("isInteger", kinds.BOOL, True, lambda text: quantity(text).denominator == 1),
                     ("asInteger", kinds.INT, True, as_integer))
        self.functions = [checked_cel.FunctionDecl(name, [checked_cel.Overload(name, result, [kinds.STRING], member, impl=function)])
                          for name, result, member, function in functions]

    def value(self, expression, wanted):
        if "Object{" in expression:
            expression = re.sub(r"([{,]\s*)(\w+):", r"\1'\2':", re.sub(r"\bObject(\.\w+)*\{", "{", expression))
        compiled = checked_cel.NewEnv(variables=self.known, functions=self.functions).compile(expression)
        value = compiled.eval(data=self.values).plain_value()
        expect(f"{expression} by the other evaluator", value, wanted)
        return value, compiled.return_type()

    def define(self, name, expression, wanted):
        name = f"variables.{name}"
        self.values[name], self.known[name] = self.value(expression, wanted)


class Policy:
    """One policy of the manifest."""

    FUNCTIONS = {"quantity": celpy.celtypes.StringType,
                 "isInteger": lambda text: celpy.celtypes.BoolType(quantity(text).denominator == 1),
                 "asInteger": lambda text: celpy.celtypes.IntType(as_integer(text))}

    def __init__(self, kind):
        self.spec = next(one for one in documents(FOLDER / "admission-policy.yaml") if one["kind"] == kind)["spec"]
        mutations = [one["applyConfiguration"]["expression"] for one in self.spec.get("mutations", [])]
        self.types = {name: type("Typed", (celpy.celtypes.MessageType,), {"place": name.split(".")[1:]})
                      for text in mutations for name in re.findall(r"\b(Object(?:\.\w+)*)\{", text)}
        self.environment = celpy.Environment(annotations={name.replace(".", "__"): made for name, made in self.types.items()})

    def value(self, expression, name=None):
        """An object's type has dots in its name there, which this CEL has not."""
        text = re.sub(r"\bObject(\.\w+)*\{", lambda match: match[0].replace(".", "__"), expression)
        value = self.environment.program(self.environment.compile(text), functions=self.FUNCTIONS).evaluate(self.given)
        if self.checked and name:
            self.checked.define(name, expression, plain(value))
        elif self.checked:
            self.checked.value(expression, plain(value))
        return value

    def matches(self, pod):
        """Whether it applies; its variables are then known. A match condition has none."""
        self.given = {"object": celpy.json_to_cel(pod), "request": celpy.json_to_cel({"namespace": "team"})}
        self.checked = checked_cel and Checked(pod)
        if not all([self.value(one["expression"]) for one in self.spec["matchConditions"]]):
            return False
        self.given["variables"] = celpy.celtypes.MapType()
        for one in self.spec["variables"]:
            self.given["variables"][celpy.celtypes.StringType(one["name"])] = self.value(one["expression"], one["name"])
        return True


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    for kind, here in ((celpy.celtypes.BoolType, bool), (celpy.celtypes.IntType, int)):
        if isinstance(value, kind):
            return here(value)
    return str(value)


def of_places(value, place=()):
    """Plain JSON of what a mutation returns, whose objects must have the types of the places where they are."""
    if isinstance(value, celpy.celtypes.MapType):
        if hasattr(value, "place"):
            expect("type of an object", value.place, list(place))
        return {str(key): of_places(one, (*place, str(key))) for key, one in value.items()}
    if isinstance(value, list):
        return [of_places(one, place) for one in value]
    return plain(value)


def merged(old, new, place=""):
    """An empty list or map adds nothing: a pod has none after the API server has read it."""
    if isinstance(new, dict):
        return (old or {}) | {key: merged((old or {}).get(key), one, key) for key, one in new.items() if one not in ({}, [])}
    if place in KEYS and isinstance(new, list):
        key, old = KEYS[place], old or []
        theirs = {one[key]: one for one in new}
        kept = [merged(one, theirs.pop(one[key])) if one[key] in theirs else one for one in old]
        return kept + list(theirs.values())
    return new


def mutated(pod):
    policy = Policy("MutatingAdmissionPolicy")
    if not policy.matches(pod):
        return pod
    for one in policy.spec["mutations"]:
        pod = merged(pod, of_places(policy.value(one["applyConfiguration"]["expression"])))
    return pod


def refusals(pod):
    policy = Policy("ValidatingAdmissionPolicy")
    if not policy.matches(pod):
        return []
    failed = [one for one in policy.spec["validations"] if not policy.value(one["expression"])]
    return [str(policy.value(one["messageExpression"])) if "messageExpression" in one else one["message"] for one in failed]


def pod_of(notes=None, limits=None, init=None, user=None, **container):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": [
        {"name": "main", "image": "image"} | container | ({"resources": {"limits": limits}} if limits else {}),
        {"name": "beside", "image": "image"}]}}
    if notes:
        pod["metadata"]["annotations"] = notes
    if init is not None:
        pod["spec"]["initContainers"] = [{"name": "before", "image": "image"} | ({"resources": {"limits": init}} if init else {})]
    if user is not None:
        pod["spec"]["securityContext"] = {"runAsUser": user}
    return pod


def variables(pod):
    """{container: {variable: value}}"""
    return {one["name"]: {each["name"]: each["value"] for each in one.get("env", [])}
            for one in pod["spec"]["containers"] + pod["spec"].get("initContainers", [])}


def limits(pod):
    return {name: seen.get("RATION_CONTAINER_LIMIT") for name, seen in variables(pod).items()}


def schemas(_):
    """Every document fits the schemas of the two newest releases, and a broken one does not."""
    seen = 0
    for release in releases():
        for manifest in MANIFESTS:
            for document in documents(manifest):
                kubernetes_validate.validate(document, release, strict=True)
                seen += 1
        policy, _, _, _ = documents(FOLDER / "admission-policy.yaml")
        daemons = documents(FOLDER / "daemonset.yaml")[-1]
        pod = documents(FOLDER / "pod.yaml")[0]
        for broken in (changed(policy, ["spec", "mutations", 0], "patchType"), changed(policy, ["spec"], "matchConditions"),
                       changed(policy, ["spec"], "variables", "none"), changed(daemons, ["spec", "template", "spec"], "hostPID"),
                       changed(daemons, ["spec", "template", "spec", "containers", 0], "env", {"A": "B"}),
                       changed(pod, ["spec", "containers", 0], "image", 5), changed(pod, ["spec"], "restartPolicy")):
            expect(f"a broken {broken['kind']} fits {release}", fits(broken, release), False)
    print(f"{seen} documents fit Kubernetes {' and '.join(releases())}; types {'are' if checked_cel else 'cannot be'} checked")


def where_a_limit_comes_from(_):
    """Our annotation, HAMi's limits and KAI's annotations, in this order; nothing else is touched."""
    gpu = {"nvidia.com/gpu": "1"}
    none = {"main": None, "beside": None}
    for plain in (pod_of(), pod_of({"other": "25%"}, gpu, init={}), pod_of(user=5)):
        expect("untouched", (mutated(plain), refusals(plain)), (plain, []))
    for notes, asked, init, wanted in (
            ({"ration.dev/limit": "25%"}, None, None, {"main": "25%", "beside": "25%"}),
            ({"ration.dev/limit": "8GiB"}, gpu, {}, {"main": "8GiB", "beside": "8GiB", "before": "8GiB"}),
            ({"gpu-fraction": "0.5"}, None, {}, {"main": "0.5", "beside": "0.5", "before": "0.5"}),
            ({"gpu-memory": "2000"}, None, None, {"main": "2000MiB", "beside": "2000MiB"}),
            (None, gpu | {"nvidia.com/gpumem": canonical(3000)}, None, none | {"main": "3000MiB"}),
            (None, gpu | {"nvidia.com/gpumem": canonical(4096)}, {}, none | {"main": "4096MiB", "before": None}),
            (None, None, {"nvidia.com/gpumem": canonical(2000000)}, none | {"before": "2000000MiB"}),
            (None, gpu | {"nvidia.com/gpumem-percentage": "40"}, None, none | {"main": "40%"}),
            (None, {"nvidia.com/gpumem": "100", "nvidia.com/gpumem-percentage": "40"}, None, none | {"main": "100MiB"}),
            ({"gpu-fraction": "0.5"}, {"nvidia.com/gpumem": "100"}, None, {"main": "100MiB", "beside": "0.5"}),
            ({"ration.dev/limit": "1g", "gpu-memory": "2000"}, {"nvidia.com/gpumem": "100"}, None, {"main": "1g", "beside": "1g"})):
        pod = mutated(pod_of(notes, asked, init))
        expect(f"limits for {notes} {asked} {init}", limits(pod), wanted)
        expect(f"refusals for {notes} {asked}", refusals(pod), [])
        expect("once more", mutated(pod), pod)
        for release in releases():
            kubernetes_validate.validate(pod, release, strict=True)
        for one in pod["spec"]["containers"] + pod["spec"].get("initContainers", []):
            expect("the library", {each["name"]: each["value"] for each in one.get("env", [])}.get("LD_PRELOAD"),
                   INSIDE if wanted[one["name"]] else None)
            expect("its volume", one.get("volumeMounts"), [{"name": "ration", "mountPath": "/usr/lib/ration", "readOnly": True}]
                   if wanted[one["name"]] else None)
        expect("a node without it starts no such pod", pod["spec"]["volumes"],
               [{"name": "ration", "hostPath": {"path": "/var/lib/ration/current/lib", "type": "Directory"}}])


def what_a_pod_has_stays(_):
    """Variables, volumes and another preloaded library of a pod."""
    env = [{"name": "HOME", "value": "/"}, {"name": "LD_PRELOAD", "value": "/lib/other.so"}, {"name": "RATION_CONTAINER_LIMIT", "value": "100%"}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    pod = pod_of({"ration.dev/limit": "25%"}, env=env, volumeMounts=mounts)
    pod["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    pod = mutated(pod)
    expect("variables", variables(pod)["main"], {"HOME": "/", "LD_PRELOAD": f"{INSIDE}:/lib/other.so", "RATION_CONTAINER_LIMIT": "25%"})
    expect("volumes", [one["name"] for one in pod["spec"]["volumes"]], ["data", "ration"])
    expect("mounts", [one["mountPath"] for one in pod["spec"]["containers"][0]["volumeMounts"]], ["/data", "/usr/lib/ration"])
    expect("once more", mutated(pod), pod)


def types_are_checked(_):
    """An expression whose types do not fit is seen, and so is one whose value the two evaluators do not agree on."""
    policy = Policy("MutatingAdmissionPolicy")
    expect_that("it matches", policy.matches(pod_of({"ration.dev/limit": "25%"})))
    if not checked_cel:
        return
    for wrong in ("variables.user + 1", "variables.grouped.startsWith('x')", "variables.nothing", "variables.entries.map(e, e.limit) + variables.user"):
        try:
            policy.checked.value(wrong, None)
        except Failure:
            raise
        except Exception as seen:  # the package's own
            expect_that(f"{wrong}: {seen}", "ERROR: <input>" in str(seen))
        else:
            raise Failure(f"{wrong} has no type error")
    try:
        policy.checked.value("variables.user", "1")
    except Failure:
        return
    raise Failure("another value is not seen")


def groups_and_shares(_):
    group = {"ration.dev/limit": "25%", "ration.dev/group": "lab", "ration.dev/group-limit": "50%"}
    for user in (None, 0, 1000):
        pod = mutated(pod_of(group, user=user, init={}))
        expect("of an init container", variables(pod)["before"], variables(pod)["main"])
        expect("variables", variables(pod)["main"], {"LD_PRELOAD": INSIDE, "RATION_CONTAINER_LIMIT": "25%", "RATION_GROUP": "team.lab",
                                                     "RATION_GROUP_LIMIT": "50%", "RATION_STATE_DIR": "/run/ration"})
        expect("its state", pod["spec"]["volumes"][-1], {"name": "ration-state", "hostPath": {
            "path": f"/var/lib/ration/state/{user or 0}", "type": "Directory"}})
        expect("refusals", refusals(pod), [])
    pod = mutated(pod_of({"ration.dev/group": "lab"}))
    expect("a group alone", variables(pod)["beside"], {"LD_PRELOAD": INSIDE, "RATION_GROUP": "team.lab", "RATION_STATE_DIR": "/run/ration"})
    pod = mutated(pod_of({"gpu-fraction": "0.5", "ration.dev/state": "node"}))
    expect("books of the node", variables(pod)["main"], {"LD_PRELOAD": INSIDE, "RATION_CONTAINER_LIMIT": "0.5", "RATION_STATE_DIR": "/run/ration"})
    pod = mutated(pod_of({"ration.dev/limit": "25%", "ration.dev/share": "25pct"}))
    expect("annotations", pod["metadata"]["annotations"], {
        "ration.dev/limit": "25%", "ration.dev/share": "25pct", "cdi.k8s.io/ration": "ration.dev/share=25pct",
        "cdi-devices.nri.io/pod": "- ration.dev/share=25pct"})
    expect("refusals", refusals(pod), [])
    expect("once more", mutated(pod), pod)


def refused_in_words(_):
    """Before the mutation has an effect, and where it had none."""
    limit = {"ration.dev/limit": "25%"}
    for pod, wanted in (
            (pod_of({"ration.dev/limit": "8Gib"}), '"8Gib" is not a size'),
            (pod_of({"ration.dev/limit": ""}), '"" is not a size'),  # and so nothing was put in place
            (pod_of({"ration.dev/limits": "8GiB"}), "no such annotation: ration.dev/limits"),
            (pod_of(limit | {"ration.dev/group": "lab", "ration.dev/group-limit": "half"}), '"half" is not a size'),
            (pod_of(limit | {"ration.dev/group-limit": "50%"}), "needs ration.dev/group"),
            (pod_of(limit | {"ration.dev/group": "a b"}), '"a b" is not a name'),
            (pod_of(limit | {"ration.dev/group": "a" * 60}), "at most 63"),
            (pod_of(limit | {"ration.dev/state": "pod"}), 'can only be "node"'),
            (pod_of(limit | {"ration.dev/state": "node"}, user=1, securityContext={"runAsUser": 2}), "runAsUser differs"),
            (pod_of(limit | {"ration.dev/state": "node"}, securityContext={"runAsUser": 2}), "runAsUser differs"),
            (pod_of({"gpu-fraction": "1.0"}), "not a fraction"), (pod_of({"gpu-fraction": "0"}), "not a fraction"),
            (pod_of({"gpu-fraction": "NaN"}), "not a fraction"), (pod_of({"gpu-memory": "2Gi"}), "not a number of MiB"),
            (pod_of({"gpu-memory": "0"}), "not a number of MiB"), (pod_of({"gpu-memory": "5", "gpu-fraction": "0.5"}), "write one of them"),
            (pod_of(limits={"nvidia.com/gpumem": "0"}), "MiB above 0"), (pod_of(init={"nvidia.com/gpumem": "500m"}), "MiB above 0"),
            (pod_of(limits={"nvidia.com/gpumem-percentage": "101"}), "1 to 100"), (pod_of(limits={"nvidia.com/gpumem-percentage": "0"}), "1 to 100"),
            (pod_of({"ration.dev/share": "25pct"}), "needs ration.dev/limit"), (pod_of(limit | {"ration.dev/share": "25%"}), "not a name of a CDI device"),
            (pod_of(limit | {"ration.dev/share": "25pct", "ration.dev/state": "node"}), "books of its own"),
            (pod_of(limit | {"ration.dev/share": "a", "cdi-devices.nri.io/pod": "- nvidia.com/gpu=0"}), "list other devices"),
            (pod_of(limit, env=[{"name": "RATION_DISABLE", "value": "1"}]), "RATION_DISABLE would lift")):
        said = refusals(mutated(pod))
        expect_that(f"{pod['metadata']}: {said}, expected {wanted!r}", len(said) == 1 + (wanted[:2] == '""') and wanted in said[0])
    for pod in (pod_of(limit), pod_of({"gpu-fraction": "0.5"}), pod_of(init={"nvidia.com/gpumem": "5"}), pod_of({"ration.dev/group": "lab"})):
        expect_that(f"not mutated: {refusals(pod)}", len(refusals(pod)) == 1 and "no limit was put in place" in refusals(pod)[0])
    pod = mutated(pod_of(limit))
    pod["spec"]["containers"][1]["env"].pop()
    expect_that("one container without it", "no limit was put in place" in refusals(pod)[0])


def sizes_that_pass_are_sizes(folder):
    """What the policy accepts, `ration` accepts; and what it refuses among usual sizes is listed here."""
    seed = int(time.time())
    print(f"seed {seed}")
    dice = random.Random(seed)
    usual = ["25%", "0.5", ".25", "1.0", "100%", "33.3%", "8GiB", "8Gi", "500Mi", "8g", "8G", "1.5GiB", "500MB", "16GB", "2TiB", "10MB", "1MiB", "8589934592",
             "8gib", "8GIB", "8gi", "8gb", "500mb", "500mB", "16 GB", "8 GiB", "40 %"]
    close = ["1MB", "1.04MB", "0%", "0.0", "100.5%", "101%", "1", "1048575", "999999TiB", "9999999TiB", "0MiB", "0.5MiB", "1.5", "8Gib", "8Gb", "8  GiB", " 8GiB", "1mb"]
    words = usual + close + ["".join(dice.choice("0123456789.%kmgtKMGTiIbB ") for _ in range(dice.randint(1, 7))) for _ in range(4000)]
    words += [f"{dice.choice(['', '0', dice.randrange(1, 10 ** dice.randint(1, 7))])}{dice.choice(['', '', f'.{dice.randrange(1000)}'])}"
              f"{dice.choice(['%', 'm', 'g', 'GiB', 'MiB', 'MB', 'GB', 'TB', '', 'k', 'Gi', 'gib', 'gb', 'mb', 'Mb', ' GiB', 'GI'])}" for _ in range(4000)]
    policy = Policy("ValidatingAdmissionPolicy")
    expect_that("a pod with a limit", policy.matches(pod_of({"ration.dev/limit": "1g"})))
    pattern = re.compile(str(policy.given["variables"]["pattern"]))
    accepted = sorted({word for word in words if pattern.search(word)})
    expect("usual sizes that pass", [word for word in usual if word not in accepted], [])
    files = []
    for number, word in enumerate(accepted):
        files.append(pathlib.Path(folder) / f"{number}.json")
        files[-1].write_text(json.dumps({"container_limit": word}))
    for start in range(0, len(files), 500):
        done = subprocess.run([RATION, "env", "--check", *files[start:start + 500]], capture_output=True, text=True, check=False)
        expect("`ration env --check`", (done.returncode, done.stderr), (0, ""))
    (pathlib.Path(folder) / "bad.json").write_text('{"container_limit": "8Gib"}')
    done = subprocess.run([RATION, "env", "--check", pathlib.Path(folder) / "bad.json"], capture_output=True, text=True, check=False)
    expect("a size that it refuses", done.returncode, 125)
    print(f"{len(accepted)} of {len(set(words))} words pass")


def programs_get_it(folder):
    """A program with the variables of a container sees and gets its limit; `ration env` has nothing to complain of."""
    for notes, asked, total in (({"ration.dev/limit": "25%"}, None, 4 * GIB), ({"ration.dev/limit": "8GiB"}, None, 8 * GIB),
                                ({"gpu-fraction": "0.5"}, None, 8 * GIB), ({"gpu-memory": "2000"}, None, 2000 << 20),
                                (None, {"nvidia.com/gpumem": canonical(3000)}, 3000 << 20),
                                (None, {"nvidia.com/gpumem-percentage": "40"}, 16 * GIB * 40 // 100),
                                ({"ration.dev/group": "lab", "ration.dev/group-limit": "6GiB", "ration.dev/limit": "50%"}, None, 6 * GIB)):
        seen = variables(mutated(pod_of(notes, asked)))["main"]
        environment = simulated(folder) | seen | {"RATION_STATE_DIR": f"{folder}/state"}
        environment.pop("LD_PRELOAD")
        told = subprocess.run([RATION, "env", "--json"], env=environment, capture_output=True, text=True, check=False)
        expect(f"`ration env` for {notes} {asked}", (told.returncode, told.stderr), (0, ""))
        setting = next(one for one in json.loads(told.stdout)["settings"] if one["key"] == "container_limit")
        expect("setting", (setting["value"], setting["source"]), (seen["RATION_CONTAINER_LIMIT"], "environment"))
        member = Member(OBEY, environment | {"LD_PRELOAD": seen["LD_PRELOAD"].replace(INSIDE, str(LIBRARY))}, pathlib.Path(folder))
        member.do("init context=0")
        expect(f"size of the device for {notes} {asked}", member.memory()[1], total)
        expect("more", member(f"alloc={(total >> 20) + 1}m"), 2)
        member.do(f"alloc={(total >> 20) - 64}m")
        member.process.stdin.close()
        member.process.wait(timeout=HANG)
        member.process.stdout.close()


class Node:
    """The DaemonSet's scripts in a folder of their own."""

    def __init__(self, folder, libraries=LIBRARY.parent, users="0"):
        space, account, scripts, daemons = documents(FOLDER / "daemonset.yaml")
        self.folder = pathlib.Path(folder)
        self.scripts = scripts["data"]
        spec = daemons["spec"]["template"]["spec"]
        for one in spec["initContainers"] + spec["containers"]:
            expect("its script", one["command"], ["sh", "-eu", f"/scripts/{one['name']}.sh"])
            expect_that(f"script {one['name']}", f"{one['name']}.sh" in self.scripts)
        expect("the account", (spec["serviceAccountName"], account["metadata"]["namespace"]),
               (account["metadata"]["name"], space["metadata"]["name"]))
        self.settings = {one["name"]: one["value"] for one in spec["initContainers"][0]["env"]}
        self.rights = {one["name"]: one["securityContext"]["capabilities"] for one in spec["initContainers"] + spec["containers"]}
        policy = mutated(pod_of({"ration.dev/limit": "25%", "ration.dev/state": "node"}))
        for volume in policy["spec"]["volumes"]:
            expect_that(f"{volume} is the DaemonSet's", volume["hostPath"]["path"].startswith(self.settings["FOLDER"] + "/"))
        self.paths = {name: self.folder / name.lower() for name in ("FOLDER", "CDI", "FIGURES")}
        self.settings |= {name: str(path) for name, path in self.paths.items()}
        self.settings |= {"LIBRARIES": str(libraries), "USERS": users, "EVERY": "0"}

    def run(self, name):
        """With no more rights than the container has."""
        granted = [one.lower() for one in self.rights[name]["add"]]
        bounded = ["setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set={','.join(['-all', *(f'+{one}' for one in granted)])}"]
        done = subprocess.run([*(bounded if os.geteuid() == 0 else []), "sh", "-eu", "-c", self.scripts[f"{name}.sh"]], env=simulated(self.folder) | self.settings,
                              capture_output=True, text=True, timeout=HANG, check=False)
        expect(f"{name}.sh: {done.stderr}", done.returncode, 0)
        return done.stdout


def a_node_is_installed(folder):
    """The library, a CDI file that names files of the node, and another version beside the first."""
    node = Node(folder, users=str(os.geteuid()))
    node.run("install")
    expect("all rights are dropped", [one["drop"] for one in node.rights.values()], [["ALL"], ["ALL"]])
    current = node.paths["FOLDER"] / "current"
    first = os.readlink(current)
    expect("the library", (current / "lib/libration.so").read_bytes(), LIBRARY.read_bytes())
    cdi = json.loads((node.paths["CDI"] / "ration.json").read_text())
    expect("devices", [one["name"] for one in cdi["devices"]], ["10pct", "25pct", "50pct"])
    mounts = [one["hostPath"] for one in cdi["containerEdits"]["mounts"] + cdi["devices"][0]["containerEdits"]["mounts"]]
    for path in mounts:
        expect_that(f"{path} is of the node", path.startswith(str(node.paths["FOLDER"])) and pathlib.Path(path).exists())
    expect("mode of the state folder", (node.paths["FOLDER"] / f"state/{os.geteuid()}").stat().st_mode & 0o777, 0o700)
    node.run("install")
    expect("once more", (os.readlink(current), len(list(node.paths["FOLDER"].glob("new.*")))), (first, 0))

    other = pathlib.Path(folder) / "other"
    other.mkdir()
    for name in ("libration.so", "libration-core.so"):
        (other / name).write_bytes((LIBRARY.parent / name).read_bytes() + b"\0")
    with (current / "lib/libration.so").open("rb") as held:
        (node.paths["FOLDER"] / "new.killed").mkdir()
        node.settings["LIBRARIES"] = str(other)
        node.run("install")
        expect_that("the first version is still there", (node.paths["FOLDER"] / first / "lib/libration.so").exists())
        expect("and the file that a pod holds", held.read(), LIBRARY.read_bytes())
    expect_that("another version", os.readlink(current) != first)
    expect("the new library", (current / "lib/libration.so").read_bytes(), (other / "libration.so").read_bytes())
    expect("remains of a killed installation", list(node.paths["FOLDER"].glob("new.*")), [])


def figures_of_users(folder):
    """Each user's in a file of its own, with a label."""
    users = [str(os.geteuid())] + (["1234"] if os.geteuid() == 0 else [])
    node = Node(folder, users=" ".join(users))
    pathlib.Path(folder).chmod(0o755)
    node.run("install")
    machine = pathlib.Path(simulated(folder)["SIMCUDA_MACHINE"])
    members = []
    for user in users:
        environment = simulated(folder) | {"RATION_CONTAINER_LIMIT": "2GiB", "RATION_GROUP": "team.lab", "LD_PRELOAD": str(LIBRARY),
                                           "RATION_STATE_DIR": str(node.paths["FOLDER"] / "state" / user)}
        machine.chmod(0o777)
        as_user = [] if user == users[0] else ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]
        members.append(Member([*as_user, *OBEY], environment, pathlib.Path(folder)))
        members[-1].do("init")
        for file in machine.iterdir():
            file.chmod(0o666)
        members[-1].do("context=0 alloc=100m")
    node.run("figures")
    for user in users:
        text = (node.paths["FIGURES"] / f"ration-{user}.prom").read_text()
        used = re.findall(r'^ration_memory_used_bytes\{user="(\d+)",gpu="GPU-[^"]*",pid="\d+".*\} (\d+)$', text, re.M)
        expect(f"figures of {user}", used, [(user, str(100 << 20))])
        for line in text.splitlines():
            expect_that(f"line {line}", line.startswith(("# HELP ration_", "# TYPE ration_")) or re.match(rf'ration_\w+{{user="{user}",', line))
    expect("files", sorted(one.name for one in node.paths["FIGURES"].iterdir()), sorted(f"ration-{user}.prom" for user in users))
    for member in members:
        member.process.stdin.close()
        member.process.wait(timeout=HANG)
        member.process.stdout.close()


main({"schemas": schemas, "where a limit comes from": where_a_limit_comes_from, "what a pod has stays": what_a_pod_has_stays, "types are checked": types_are_checked,
      "groups and shares": groups_and_shares, "refused in words": refused_in_words, "sizes that pass are sizes": sizes_that_pass_are_sizes,
      "programs get it": programs_get_it, "a node is installed": a_node_is_installed, "figures of users": figures_of_users})
