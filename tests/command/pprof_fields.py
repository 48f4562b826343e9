"""Prints a profile of pprof as JSON, read by the library of protocol buffers: pprof_fields.py FILE

The fields are those of google/pprof's proto/profile.proto. Indices of strings are replaced by the strings.
"""
import gzip
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

TYPES = {"int64": 3, "uint64": 4, "bool": 8, "string": 9}
MESSAGES = {
    "ValueType": [("type", 1, "int64"), ("unit", 2, "int64")],
    "Label": [("key", 1, "int64"), ("str", 2, "int64"), ("num", 3, "int64"), ("num_unit", 4, "int64")],
    "Sample": [("location_id", 1, "*uint64"), ("value", 2, "*int64"), ("label", 3, "*Label")],
    "Mapping": [("id", 1, "uint64"), ("memory_start", 2, "uint64"), ("memory_limit", 3, "uint64"), ("file_offset", 4, "uint64"),
                ("filename", 5, "int64"), ("build_id", 6, "int64"), ("has_functions", 7, "bool"), ("has_filenames", 8, "bool"),
                ("has_line_numbers", 9, "bool"), ("has_inline_frames", 10, "bool")],
    "Line": [("function_id", 1, "uint64"), ("line", 2, "int64")],
    "Location": [("id", 1, "uint64"), ("mapping_id", 2, "uint64"), ("address", 3, "uint64"), ("line", 4, "*Line"),
                 ("is_folded", 5, "bool")],
    "Function": [("id", 1, "uint64"), ("name", 2, "int64"), ("system_name", 3, "int64"), ("filename", 4, "int64"),
                 ("start_line", 5, "int64")],
    "Profile": [("sample_type", 1, "*ValueType"), ("sample", 2, "*Sample"), ("mapping", 3, "*Mapping"), ("location", 4, "*Location"),
                ("function", 5, "*Function"), ("string_table", 6, "*string"), ("drop_frames", 7, "int64"), ("keep_frames", 8, "int64"),
                ("time_nanos", 9, "int64"), ("duration_nanos", 10, "int64"), ("period_type", 11, "ValueType"), ("period", 12, "int64"),
                ("comment", 13, "*int64"), ("default_sample_type", 14, "int64")],
}
TEXTS = {"type", "unit", "key", "str", "num_unit", "filename", "build_id", "name", "system_name", "comment", "default_sample_type"}


def profile_class():
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            plain = kind.removeprefix("*")
            added = message.field.add(name=field, number=number, label=3 if kind.startswith("*") else 1, type=TYPES.get(plain, 11))
            if plain in MESSAGES:
                added.type_name = f".perftools.profiles.{plain}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))


def with_texts(value, strings, key=""):
    if isinstance(value, dict):
        return {name: with_texts(each, strings, name) for name, each in value.items()}
    if isinstance(value, list):
        return [with_texts(each, strings, key) for each in value]
    if key == "string_table" or isinstance(value, bool):
        return value
    return strings[int(value)] if key in TEXTS else int(value)


with open(sys.argv[1], "rb") as compressed:
    profile = profile_class().FromString(gzip.decompress(compressed.read()))
unknown = profile.SerializeToString()
profile.DiscardUnknownFields()
assert profile.SerializeToString() == unknown, "fields that profile.proto does not have"
assert profile.string_table[0] == "", "the first string is the empty one"
fields = json_format.MessageToDict(profile, preserving_proto_field_name=True)
print(json.dumps(with_texts(fields, list(profile.string_table))))
