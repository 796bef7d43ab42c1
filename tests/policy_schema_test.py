"""usage: policy_schema_test.py POLICIES COLLX

The JSON schema agrees with the reader about policies: the same words, the shipped ones are right, and
what the schema can find is found."""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"SKIP: {error}; install python3-jsonschema and python3-yaml")
    sys.exit(77)

folder = pathlib.Path(sys.argv[1])
schema = json.loads((folder / "policy.schema.json").read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
failed = 0
refused = []


def expect(right, what, policy):
    global failed
    if not right:
        refused.append((what, policy))
    if validator.is_valid(policy) != right:
        print(f"FAIL: {what}: the schema says it is {'wrong' if right else 'right'}")
        failed += 1


for path in sorted(folder.glob("*.yaml")):
    text = path.read_text()
    expect(True, path.name, yaml.safe_load(text))
    if not text.startswith("# yaml-language-server: $schema=policy.schema.json\n"):
        print(f"FAIL: {path.name} does not name its schema")
        failed += 1

rule = {"match": {"collective": "bcast"}, "use": ["shm"]}
base = {"version": 1, "rules": [rule]}
for key, good, bad in [
    ("collective", [["barrier", "bcast"]], ["gather", [], ["bcast", "bcast"]]),
    ("ranks", [4, "..8", "2..64", "17..", ".."], [0, "a", "1-2"]),
    ("bytes", [0, "4096", "..8KiB", "64KiB..1MiB", "1MiB.."], [-1, "8kb", "1..2..3"]),
    ("op", ["sum", ["sum", "user"]], ["none", "sun"]),
    ("comm", ["MPI_COMM_WORLD", "a*", 3, True], [""]),
    ("size", [], [3]),
]:
    for values, right in (good, True), (bad, False):
        for value in values:
            policy = copy.deepcopy(base)
            policy["rules"][0]["match"][key] = value
            expect(right, f"{key}: {value}", policy)
for use, right in [
    ("shm", True), ("nx(n=6)", True), ([{"nx": {"n": 6, "mode": "exchange"}}, "pmpi"], True),
    (" nx (n=6)", True), ({"nx": {}}, True),
    ([], False), (None, False), (["nx(n=6", "mode=exchange)"], False), ({"nx": 6}, False),
]:
    expect(right, f"use: {use}", {"version": 1, "rules": [{"use": use}]})
for order, right in [("rank", True), ("any", True), ("ranks", False), (None, False)]:
    expect(right, f"order: {order}", {"version": 1, "rules": [{"order": order, "use": "shm"}]})
for options, right in [
    ({"stall": "60s", "spin": -1, "verbose": 1, "memory": 4096}, True), ({"stall": 30}, False),
    # Quotes make no difference to the reader.
    ({"stall": "0", "spin": "-1", "verbose": "1", "memory": "4096", "at_once": "1"}, True),
    # What is a word in YAML 1.2, which editors read, is true or false in 1.1, which is read here.
    ({"at_once": True}, True), ({"at_once": "on"}, True), ({"at_once": "no"}, True),
    ({"at_once": "maybe"}, False), ({"kernels": "avx2"}, True), ({"kernels": "sse"}, False),
    ({"trace": "/tmp"}, False),
]:
    expect(right, f"options: {options}", {**base, "options": options})
# Asked for a word that does not exist, the reader lists those that do.
with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
    file.write("version: 1\noptions: { qqqqqqqq: 1 }\nrules:\n"
               "  - { match: { qqqqqqqq: 1 }, use: shm }\n"
               "  - { match: { op: qqqqqqqq }, use: shm }\n"
               "  - { match: { collective: qqqqqqqq }, use: shm }\n"
               "  - { order: qqqqqqqq, use: shm }\n")
    file.flush()
    said = subprocess.run([sys.argv[2], "policy", "check", file.name], stderr=subprocess.PIPE,
                          text=True, check=False).stderr
lists = [set(words.split(", ")) for words in re.findall(r"there are (.*)", said)]
definitions = schema["definitions"]
in_schema = [
    set(schema["properties"]["options"]["properties"]),
    set(definitions["match"]["properties"]),
    set(definitions["op"]["enum"]),
    set(definitions["collective"]["enum"]),
    set(definitions["rule"]["properties"]["order"]["enum"]),
]
if lists != in_schema:
    print(f"FAIL: the reader knows {lists}, the schema {in_schema}")
    failed += 1

expect(True, "version in quotes", {**base, "version": "1"})
expect(False, "no version", {"rules": [rule]})
expect(False, "no rules", {"version": 1, "rules": []})

# What the schema does not let pass, the reader does not either; JSON is YAML.
with tempfile.TemporaryDirectory() as name:
    files = [pathlib.Path(name) / f"{number}.yaml" for number in range(len(refused))]
    for file, (what, policy) in zip(files, refused):
        file.write_text(json.dumps(policy))
    out = subprocess.run([sys.argv[2], "policy", "check", *files], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=False).stdout
    for file, (what, policy) in zip(files, refused):
        if f"{file}: right" in out:
            print(f"FAIL: {what}: the reader takes what the schema refuses")
            failed += 1
sys.exit(1 if failed else 0)
