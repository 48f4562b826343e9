"""Checks records of a log against shim/events/log.schema.json, and that they have no key which that does not list."""
import copy
import functools
import json
import pathlib
import sys

sys.path.append("/usr/lib/python3/dist-packages")  # another interpreter than the distribution's has not its packages
import fastjsonschema  # noqa: E402

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "shim/events/log.schema.json").read_text())


def closed(schema):
    """The schema, in which an object has the listed keys only."""
    if isinstance(schema, dict):
        made = {key: closed(value) for key, value in schema.items()}
        if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
            made["additionalProperties"] = False
        return made
    return [closed(each) for each in schema] if isinstance(schema, list) else schema


def compiled(schema, kind):
    """Of one kind of object, so that the error names the key and not only that no kind fits."""
    definitions = closed(copy.deepcopy(schema["definitions"]))
    return fastjsonschema.compile({"$schema": schema["$schema"], "keys": schema.get("keys"), "definitions": definitions,
                                   "$ref": f"#/definitions/{kind}"})


@functools.cache
def validator(kind):
    return compiled(SCHEMA, kind)


def first_problem(validate, value):
    """What is wrong with it; None: nothing."""
    try:
        validate(value)
    except fastjsonschema.JsonSchemaException as wrong:
        return f"{wrong.message}: {json.dumps(value)[:300]}"
    return None


def problem(record):
    """What is wrong with a record; None: nothing."""
    kind = record.get("t")
    if {"$ref": f"#/definitions/{kind}"} not in SCHEMA["oneOf"]:
        return f"no kind of record: {record}"
    return first_problem(validator(kind), record)
