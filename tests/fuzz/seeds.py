#!/usr/bin/env python3
"""Writes the seeds that exist in another form into the given directory: callers' requests from the scenarios of the
dialects, and the example configuration of a server with all its settings enabled."""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def requests(into):
    for scenario in sorted(ROOT.glob("tests/data/providers/*/*/completion.json")):
        body = {"model": "a/b"} | json.loads(scenario.read_text())["asked"]
        name = f"{scenario.parent.parent.name}-{scenario.parent.name}.json"
        (into / name).write_text(json.dumps(body))


def configuration(into):
    manual = (ROOT / "man/mk-server.5.md").read_text()
    example = manual.split("```toml\n")[1].split("```")[0]
    (into / "example.toml").write_text(re.sub(r"(?m)^#(?=\S)", "", example))


out = pathlib.Path(sys.argv[1])
for target, write in {"completions": requests, "config": configuration}.items():
    (out / target).mkdir(parents=True, exist_ok=True)
    write(out / target)
