"""Writes datafusion_anonymize/_functions.py from the signatures of the SQL functions; with --check, says whether it is so already."""

from __future__ import annotations

import importlib.util
import json
import sys
import textwrap
from pathlib import Path

TARGET = Path(__file__).parent / "datafusion_anonymize" / "_functions.py"

#: Functions that return a table, beside those that make a release. What is not here is a method of an object.
TABLES = ["sequential_worlds", "reposition", "profile", "advise", "query_accuracy", "census"]
#: What is reached in another way: release.loss(), release.estimate(), to_pandas(ranges="columns"), and the methods of a publication.
ELSEWHERE = ["information_loss", "estimated", "flat", "release", "releases", "audit", "check_snapshots"]

TYPES = {
    "relation": "Input",
    "release": "Input",
    "relations": "Releases",
    "integer": "int",
    "number": "float",
    "number or relation": "float | Input",
    "length": "Length",
    "seed": "Seed",
    "boolean": "bool",
    "column": "str",
    "columns": "Columns",
}

HEAD = '''"""The functions, with their arguments: written by python/generate.py from the signatures of the SQL functions."""

from __future__ import annotations

from typing import Literal

from ._measures import Disclosure, infer
from ._release import Release, make
from ._sql import Query
from ._table import Table
from ._types import Columns, Input, Inputs, Length, Releases, Seed


def _table(function: str, arguments: dict[str, object]) -> Table:
    with Query() as query:
        return Table(query.run(f"SELECT * FROM {query.call(function, arguments)}", function, 5))
'''


def annotation(parameter: dict[str, object]) -> str:
    """The type of an argument."""
    words = ", ".join(f'"{word}"' for word in parameter["words"])
    if parameter["name"] == "previous":
        kind = "Inputs"
    elif parameter["kind"] == "word":
        kind = f"Literal[{words}]"
    elif parameter["kind"] == "word or relation":
        kind = f"Literal[{words}] | Input"
    elif parameter["kind"] == "integer or word":
        kind = f"int | Literal[{words}]"
    elif parameter["kind"] == "number or word":
        kind = f"float | Literal[{words}]"
    else:
        kind = TYPES[parameter["kind"]]
    return kind if parameter["required"] else f"{kind} | None"


def written(function: dict[str, object]) -> str:
    """A function of Python."""
    name, parameters = function["name"], function["parameters"]
    if function["releases"]:
        returned, called = "Release", f'make("{name}", '
        parameters = [parameter for parameter in parameters if parameter["name"] != "private"]
    elif name == "disclosure":
        returned, called = "Disclosure", "infer("
    else:
        returned, called = "Table", f'_table("{name}", '
    required = [parameter for parameter in parameters if parameter["required"]]
    optional = [parameter for parameter in parameters if not parameter["required"]]
    lines = [f"def {name}("]
    lines += [f"    {parameter['name']}: {annotation(parameter)}," for parameter in required]
    lines += ["    *,"] if optional else []
    lines += [f"    {parameter['name']}: {annotation(parameter)} = None," for parameter in optional]
    lines += [f") -> {returned}:"]
    lines += [f'    """{function["about"][0].upper()}{function["about"][1:]}.', "", "    Args:"]
    for parameter in [*required, *optional]:
        default = "" if parameter["required"] else f" [{parameter['default_text']}]"
        text = f"{parameter['name']}: {parameter['text']}{default}"
        lines += textwrap.wrap(text, 116, initial_indent="        ", subsequent_indent="            ", break_on_hyphens=False)
    lines += ['    """', f"    return {called}" + "{"]
    lines += [f'        "{parameter["name"]}": {parameter["name"]},' for parameter in [*required, *optional]]
    lines += ["    })"]
    return "\n".join(lines) + "\n"


def signatures() -> list[dict[str, object]]:
    """What the native part says; the package itself needs what is written here."""
    # Beside this file is the package without its native part, unless it was built in place.
    found = [path for folder in sys.path for path in Path(folder or ".").glob("datafusion_anonymize/_native*.so")]
    if not found:
        raise SystemExit("the package is not installed: pip install -e python")
    spec = importlib.util.spec_from_file_location("_native", found[0])
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    return json.loads(native.signatures())


def module() -> str:
    """All functions."""
    functions = {function["name"]: function for function in signatures()}
    releases = [name for name, function in functions.items() if function["releases"]]
    known = [*releases, *TABLES, "disclosure", *ELSEWHERE]
    if sorted(known) != sorted(functions):
        different = sorted(set(known) ^ set(functions))
        raise SystemExit(f"functions that generate.py and SQL do not both know: {', '.join(different)}")
    chosen = [*releases, *TABLES, "disclosure"]
    return HEAD + "".join(f"\n\n{written(functions[name])}" for name in chosen)


if __name__ == "__main__":
    text = module()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if TARGET.read_text() == text else f"{TARGET.name} is not what SQL says: run python/generate.py")
    TARGET.write_text(text)
