"""Writes datafusion_anonymize/_functions.py from the declarations of the library; with --check, fails if it would change."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "datafusion_anonymize" / "_functions.py"

#: Functions that return a table, beside those that make a release. The others are methods of an object.
TABLES = ["sequential_worlds", "reposition", "profile", "advise", "query_accuracy", "census"]
#: Reached in another way: release.loss(), release.estimate(), to_pandas(ranges="columns"), and the methods of a publication.
ELSEWHERE = ["information_loss", "estimated", "flat", "release", "releases", "audit", "check_snapshots"]

TYPES = {
    "relation": "Input",
    "release": "Input",
    "relations": "Releases",
    "integer": "int",
    "number": "float",
    "length": "Length",
    "seed": "Seed",
    "boolean": "bool",
    "column": "str",
    "columns": "Columns",
    "place": "Place",
}

HEAD = '''"""Functions with the arguments that the library declares: written by python/generate.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ._measures import Disclosure, Releases, infer
from ._publication import Publication, open_publication
from ._release import Release, make
from ._sql import Query
from ._table import Table
from ._types import Columns, Input, Inputs, Length, Place, Seed


def _table(function: str, arguments: dict[str, Any]) -> Table:
    with Query() as query:
        return Table(query.rows(function, arguments))
'''

#: Texts of arguments and functions that are others than in SQL.
TEXTS = {
    "input": "the table, or the path or URL of a file",
    "previous": "the earlier releases: the last one, which knows those before it, or a list in their order; paths are stored private views",
    "profile": "facts of a table before it is anonymized: who is singled out, suggested roles, the largest m",
    "releases": "a release, a list of several, or a publication",
}
DEFAULTS = {"the session's, or the columns' metadata": "the columns' metadata", "none: the first release": "none", "entropy": "drawn"}
#: Words of SQL, which no docstring may have.
SQL = re.compile(r"=>|\b(relations?|CTE|parentheses|NULL)\b|(?<!\w)'\w+'(?!\w)|: (true|false)\b")
#: Arguments beside options of publications: name, type and text.
OWN = [
    ("schema", "Input | None", "the table that is inserted, or one like it; only its columns count"),
    ("storage", "Mapping[str, str] | None", 'options of object stores, such as {"aws.region": ".."}'),
    ("memory_limit", "int | str | None", 'the greatest size in memory, in bytes or as a text such as "4GB"'),
]


def annotation(parameter: dict[str, Any]) -> str:
    """Returns the type of an argument."""
    literal = f"Literal[{', '.join(quoted(word) for word in parameter['words'])}]"
    kinds = [literal if kind == "word" else TYPES[kind] for kind in parameter["kind"].split(" or ")]
    kind = "Inputs" if parameter["name"] == "previous" else " | ".join(kinds)
    return kind if parameter["required"] else f"{kind} | None"


def quoted(text: str) -> str:
    """Writes a text as Python does here."""
    return json.dumps(text, ensure_ascii=False)


def python(text: str) -> str:
    """Writes a text of the library with the constants of Python."""
    text = re.sub(r"(?<!\w)'([\w ]+)'(?!\w)", r'"\1"', text)
    return re.sub(r"^(true|false)\b", lambda found: found[0].capitalize(), text)


def described(parameter: dict[str, Any]) -> str:
    """Returns the text of an argument, with its default."""
    text = TEXTS.get(parameter["name"]) or python(parameter["text"])
    if re.match(r"\w+(, [\w.]+)*( and (perhaps )?\w+)?: ", text) and parameter["kind"] in ("relation", "word or relation"):
        text = f"table of {text}"
    default = "" if parameter["required"] else python(DEFAULTS.get(parameter["default_text"]) or parameter["default_text"])
    return text if default in ("", "none", "required") else f"{text} [{default}]"


def example(function: str, parameters: list[dict[str, Any]], **more: str) -> str:
    """Returns a call with the arguments that it must have, those without which it is refused, and the roles of columns."""
    shown = ("k", "original", "id", "quasi", "sensitive")

    def value(parameter: dict[str, Any]) -> str:
        names = parameter["example"].strip("()").split(", ")
        if parameter["kind"] == "columns" and len(names) > 1:
            return f"[{', '.join(quoted(name) for name in names)}]"
        if parameter["kind"] in ("column", "columns"):
            return quoted(names[0])
        text = str(parameter["example"]).replace("'", '"')
        return f"[{text[1:-1]}]" if text.startswith("(") else text

    chosen = [parameter for parameter in parameters if parameter["required"] or parameter["name"] in shown]
    chosen.sort(key=lambda parameter: not parameter["required"])
    named = {parameter["name"]: value(parameter) for parameter in chosen} | more
    # Tables that must be there are given by their places.
    places = [parameter["name"] for parameter in chosen if parameter["required"] and parameter["kind"] in ("relation", "release", "relations")]
    return f"an.{function}({', '.join(shown if name in places else f'{name}={shown}' for name, shown in named.items())})"


def function(name: str, returned: str, body: str, about: str, example: str, arguments: list[tuple[str, str, str]]) -> str:
    """Writes a function of Python. Arguments are name, type and text; those that may be None are given by their names."""
    arguments.sort(key=lambda argument: argument[1].endswith("None"))
    texts = [f"{argument}: {text}" for argument, _, text in arguments]
    optional = [kind.endswith("None") for _, kind, _ in arguments]
    lines = [f"    {argument}: {kind}{' = None' if kind.endswith('None') else ''}," for argument, kind, _ in arguments]
    lines.insert(optional.index(True), "    *,")
    call, *wrapped = [
        textwrap.fill(text, 116, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False) for text in [example, *texts]
    ]
    docstring = "\n".join([f'    """Returns {about}.', "", "    Example:", call, "", "    Args:", *wrapped, '    """'])
    if found := SQL.search(docstring):
        raise SystemExit(f"{name}: {found[0]} is no word of Python: say it in TEXTS or DEFAULTS of generate.py")
    head = "\n".join([f"def {name}(", *lines, f") -> {returned}:"])
    return f"{head}\n{docstring}\n    return {body}\n"


def of_sql(declared: dict[str, Any]) -> str:
    """Writes a function of SQL as one of Python."""
    name, parameters = declared["name"], declared["parameters"]
    if declared["releases"]:
        returned, body = "Release", f'make("{name}", locals())'
        parameters = [parameter for parameter in parameters if parameter["name"] != "private"]
    elif name == "disclosure":
        returned, body = "Disclosure", "infer(locals())"
    else:
        returned, body = "Table", f'_table("{name}", locals())'
    arguments = [(parameter["name"], annotation(parameter), described(parameter)) for parameter in parameters]
    return function(name, returned, body, TEXTS.get(name) or declared["about"], example(name, parameters), arguments)


def of_publications(declared: dict[str, Any]) -> str:
    """Writes the function that opens publications, with the options of all methods."""
    arguments = [("location", "Place", "where readers find it, a folder or URL")]
    options: dict[str, list[dict[str, Any]]] = {}
    for parameter in declared["parameters"]:
        options.setdefault(parameter["name"], []).append(parameter)
    # Each insertion says its own.
    del options["period"]
    methods = options["method"][0]["words"]
    for name, takers in options.items():
        words = list(dict.fromkeys(word for taker in takers for word in taker["words"]))
        texts: dict[str, list[str]] = {}
        for taker in takers:
            texts.setdefault(described(taker), []).append(taker["method"])
        # Options of most methods are not said to be of these.
        common = takers[0]["method"] is None or (len(texts) == 1 and 2 * len(takers) > len(methods))
        text = "; ".join(text if common else f"of {', '.join(whose)}: {text}" for text, whose in texts.items())
        arguments.append((name, annotation({**takers[0], "words": words, "required": False}), text))
        if name == "method":
            arguments += OWN[:1]
    first = methods[0]
    own = [parameter for parameter in declared["parameters"] if parameter["method"] == first]
    shown = example("publication", own, schema="patients", begin="True").replace("(", f'("lake/hospital/", method="{first}", ', 1)
    return function("publication", "Publication", "open_publication(locals())", declared["about"], shown, arguments + OWN[1:])


def signatures() -> list[dict[str, Any]]:
    """Returns the declarations of the library, from the native part: the package itself needs what is written here."""
    # Beside this file is the package without its native part, unless it was built in place.
    found = [path for folder in sys.path for path in Path(folder or ".").glob("datafusion_anonymize/_native*.so")]
    if not found:
        raise SystemExit("the package is not installed: pip install -e python")
    spec = importlib.util.spec_from_file_location("_native", found[0])
    assert spec is not None and spec.loader is not None
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    declared: list[dict[str, Any]] = json.loads(native.signatures())
    return declared


def module() -> str:
    """Returns the text of the module."""
    functions = {function["name"]: function for function in signatures()}
    publication = functions.pop("publication")
    releases = [name for name, function in functions.items() if function["releases"]]
    known = [*releases, *TABLES, "disclosure", *ELSEWHERE]
    if sorted(known) != sorted(functions):
        different = sorted(set(known) ^ set(functions))
        raise SystemExit(f"functions that generate.py and SQL do not both know: {', '.join(different)}")
    chosen = [*releases, *TABLES, "disclosure"]
    return "\n\n".join([HEAD, *(of_sql(functions[name]) for name in chosen), of_publications(publication)])


if __name__ == "__main__":
    text = module()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if TARGET.read_text() == text else f"{TARGET.name} is not what SQL says: run python/generate.py")
    TARGET.write_text(text)
