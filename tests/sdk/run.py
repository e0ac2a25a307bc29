"""Runs all tests of this folder: real client libraries, and Schemathesis with whatever the description of the API allows,
against the real server, which no look-alike can stand for.

Needs the packages of requirements.txt (test_llama_index: of requirements-llama-index.txt); `.ci/run` makes the
environments. Arguments are names of tests, as of `python -m unittest`; without any, all run. MK_BINARY names another
`mk` than target/debug/mk, MK_NODE the folder that has the packages of package.json.
"""

import sys
import unittest
from importlib.metadata import distributions
from pathlib import Path

sys.dont_write_bytecode = True  # the folder holds nothing but what is committed

import desk

CLIENTS = (
    "anthropic", "openai", "openai-agents", "langchain-openai", "litellm", "llama-index-core", "llm", "pydantic-ai-slim"
)


def main():
    loader = unittest.defaultTestLoader
    names = sys.argv[1:]
    tests = loader.loadTestsFromNames(names) if names else loader.discover(str(Path(__file__).parent))
    desk.desk()  # one that does not start is told once, not by every test
    try:
        result = unittest.TextTestRunner(verbosity=1).run(tests)
    finally:
        desk.close()
    installed = {found.metadata["Name"]: found.version for found in distributions()}
    clients = ", ".join(f"{name} {installed[name]}" for name in CLIENTS if name in installed)
    failed = len(result.failures) + len(result.errors)
    print(f"clients ({clients}): tests {result.testsRun}, failed {failed}")
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
