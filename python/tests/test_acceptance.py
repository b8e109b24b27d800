"""The ten checks that the package was accepted by. Those that are measurements print what they measured (pytest -s)."""

from __future__ import annotations

import ast
import csv
import glob
import inspect
import io
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import datafusion_anonymize as an
from shared import CENSUS, ROOT

REQUIRED = os.environ.get("ANONYMIZE_PYTHON") == "require"
#: Strict about speed: off where others use the machine as well.
MEASURE = os.environ.get("ANONYMIZE_MEASURE") == "1"


def wheel() -> pathlib.Path:
    """The wheel that .ci/python has built."""
    found = sorted(glob.glob(os.environ.get("ANONYMIZE_WHEEL", str(ROOT / "target" / "wheels" / "datafusion_anonymize-*.whl"))))
    if not found:
        if REQUIRED:
            pytest.fail("there is no wheel")
        pytest.skip("no wheel has been built")
    return pathlib.Path(found[-1])


def cargo(*arguments: str) -> str:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not here")
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_01_datafusion_is_compiled_once() -> None:
    """What shell and module share has the same features in both, so that neither compiles it again. .ci/python looks at the builds."""

    def crates(package: str) -> set[str]:
        lines = cargo("tree", "--locked", "--offline", "-e", "normal,build", "--prefix", "none", "-f", "{p} [{f}]", "-p", package)
        return {line.removesuffix(" (*)") for line in lines.splitlines()}

    shell, module = crates("anonymize"), crates("datafusion-anonymize-python")
    ours = ("pyo3", "target-lexicon", "datafusion-anonymize-python")
    assert any(line.startswith("datafusion v") for line in shell & module)
    assert all(line.startswith(ours) for line in module - shell), module - shell


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_02_imports_alone(which: str, tmp_path: pathlib.Path) -> None:
    """No pandas, polars or pyarrow: on 3.10, and on the newest Python that is to be had."""
    found: dict[tuple[int, int], str] = {}
    places = [*glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python")), *(shutil.which(f"python3.{n}") or "" for n in range(10, 20))]
    for python in [*filter(None, places), sys.executable]:
        ask = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
        if ask.returncode == 0:
            major, minor = map(int, ask.stdout.split())
            if (major, minor) >= (3, 10):
                found.setdefault((major, minor), python)
    if which == "oldest" and (3, 10) not in found:
        pytest.skip("Python 3.10 is not here")
    version = (3, 10) if which == "oldest" else max(found)
    package = wheel()
    subprocess.run([found[version], "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", package], check=True)
    script = """
        import importlib.util
        assert all(importlib.util.find_spec(name) is None for name in ("pandas", "polars", "pyarrow", "duckdb", "numpy"))
        import datafusion_anonymize as an
        release = an.m_invariant(an.census(500), m=3, id="person_id", quasi=["age", "gender"], sensitive="occupation")
        assert len(release.to_pylist()) == len(release) >= 500 and release.loss().total > 0
        release.write_csv("release.csv")
        release._repr_html_()
        for method in ("to_pandas", "to_polars", "to_arrow", "to_duckdb"):
            try:
                getattr(release, method)()
            except ModuleNotFoundError as error:
                assert "pip install" in str(error)
            else:
                raise AssertionError(method)
    """
    subprocess.run([python, "-c", textwrap.dedent(script)], check=True, cwd=tmp_path)
    print(f"imports on Python {version[0]}.{version[1]}")


def test_03_rows_equal_the_shells(shell: pathlib.Path, people: an.Table, tmp_path: pathlib.Path) -> None:
    people.write_parquet(tmp_path / "people.parquet")
    roles = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation, seed => 'a seed'"
    for method, arguments, sql in [
        ("m_invariant", {"m": 5}, "m => 5"),
        ("m_distinct", {"m": 3, "updates": "any"}, "m => 3, updates => 'any'"),
        ("mondrian", {"k": 10, "l": 3}, "k => 10, l => 3"),
        ("muco", {"delta": 0.2}, "delta => 0.2"),
        ("non_sequential", {"l": 4}, "l => 4"),
    ]:
        target = tmp_path / f"{method}.csv"
        query = f"COPY (SELECT * FROM {method}('{tmp_path}/people.parquet', {sql}, {roles})) TO '{target}' OPTIONS ('format.has_header' 'true')"
        subprocess.run([shell, "-q", "-c", query], check=True, capture_output=True)
        release = getattr(an, method)(tmp_path / "people.parquet", **arguments, **CENSUS, seed="a seed")
        release.write_csv(tmp_path / "python.csv")
        assert (tmp_path / "python.csv").read_text() == target.read_text(), method
        assert len(list(csv.reader(io.StringIO(target.read_text())))) == len(release) + 1


def test_03_signatures_equal_sqls() -> None:
    """The functions are written from the signatures of the SQL functions."""
    subprocess.run([sys.executable, ROOT / "python" / "generate.py", "--check"], check=True)
    functions = {function["name"]: function for function in json.loads(an._native.signatures())}
    compared = 0
    for name, function in functions.items():
        if name not in an.__all__:
            continue
        assert all(one["text"] and one["default_text"] for one in function["parameters"]), name
        parameters = inspect.signature(getattr(an, name)).parameters
        call = ast.parse(re.search(r"Example:\n(.*?)\n\n", inspect.getdoc(getattr(an, name)) or "", re.S)[1].strip(), mode="eval").body
        inspect.signature(getattr(an, name)).bind(*call.args, **{word.arg: word.value for word in call.keywords})
        if name == "publication":
            declared = {one["name"] for one in function["parameters"]} - {"period"}
            assert set(parameters) == declared | {"location", "schema", "storage", "memory_limit"}
            continue
        expected = [one["name"] for one in function["parameters"] if one["name"] != "private" or name == "reposition"]
        assert sorted(parameters) == sorted(expected), name
        for one in function["parameters"]:
            if one["name"] in parameters:
                assert (parameters[one["name"]].default is inspect.Parameter.empty) == one["required"], (name, one["name"])
        compared += 1
    assert compared == 15


def test_04_one_draw_is_one_release(people: an.Table, tmp_path: pathlib.Path) -> None:
    """Without a seed: shown, converted, written and asked, it is the same rows; another call is another draw."""
    release = an.m_invariant(people, m=5, **CENSUS)
    rows = release.to_polars(ranges="columns")
    release.write_parquet(tmp_path / "public.parquet", ranges="columns")
    release.write_csv(tmp_path / "public.csv")
    import polars

    assert polars.read_parquet(tmp_path / "public.parquet").equals(rows)
    assert polars.read_csv(tmp_path / "public.csv").equals(rows.with_columns(polars.all().cast(polars.Int64)))
    assert polars.DataFrame(release.to_arrow(ranges="columns")).equals(rows)
    assert polars.from_pandas(release.to_pandas()).equals(rows)
    assert release._repr_html_() == release._repr_html_() and repr(release) == repr(release)
    first = rows.row(0, named=True)
    assert f"[{first['age_lo']}, {first['age_hi']}]" in release._repr_html_() or first["age_lo"] == first["age_hi"]
    public = [name for name in release.private.columns if name in release.columns]
    assert an.Table(release.private._native.select(public)).to_pylist() == release.to_pylist()
    assert release.estimate("SELECT count(*) AS n FROM release")["n"] == [len(release) - release.counterfeits]
    assert an.m_invariant(people, m=5, **CENSUS).to_pylist() != release.to_pylist()


def test_05_ranges_have_tests_of_their_own() -> None:
    """Every mode with NULL, dates, texts and nodes, and CSV and back."""
    import test_conversions as tests

    for name in ("columns", "structs", "texts", "intervals", "csv_round_trip"):
        assert hasattr(tests, f"test_{name}")


#: Calls that take long, by name.
LONG = {
    "m_invariant": "an.m_invariant(big, m=10, **who)",
    "m_distinct": "an.m_distinct(big, m=5, updates='any', **who)",
    "dynamic": "an.dynamic(big, m=5, **who)",
    "mondrian": "an.mondrian(big, k=10, l=5, **who)",
    "anatomy": "an.anatomy(big, l=10, **who)",
    "muco": "an.muco(big, delta=0.1, **who)",
    "sequential_worlds": "an.sequential_worlds(big, l=5, **who)",
    "sequential_release": "an.sequential_release(big, worlds=worlds, id='person_id', quasi=['age', 'birthplace'], sensitive='occupation')",
    "non_sequential": "an.non_sequential(big, l=5, **who)",
    "reposition": "an.reposition(stream, l=2, time='day', window=20, sensitive='income', finish=True)",
    "profile": "an.profile(big)",
    "advise": "an.advise(big, **who)",
    "query_accuracy": "an.query_accuracy(big, release, queries=100000)",
    "disclosure": "an.disclosure([release] * 8, original=big, **who)",
    "loss": "[an.loss(big, release) for _ in range(1000)]",
    "compare": "an.compare(big, {'m_invariant': {'m': [2, 5]}}, **who)",
    "sql": "an.connect().sql('SELECT sum(a.x * b.x) FROM generate_series(100000) AS a(x) CROSS JOIN generate_series(1000000) AS b(x)')",
}

INTERRUPT = """
    import os, signal, sys, threading, time
    import datafusion_anonymize as an
    who = dict(id="person_id", quasi=["age", "gender", "education", "birthplace"], sensitive="occupation")
    big = an.census({rows}, seed=1)
    call = sys.argv[1]
    if "release" in call or "[release" in call:
        small = big if "query" in call or "an.loss" in call else an.census(200000, seed=1)
        release = an.mondrian(small, k=10, id="person_id", quasi=who["quasi"], sensitive="occupation")
        big = small
    if "worlds=" in call:
        worlds = an.sequential_worlds(big, l=5, **who)
    stream = big
    if "stream" in call:
        con = an.connect()
        con.register("big", big)
        stream = con.sql("SELECT person_id % 60 AS day, income FROM big LIMIT {stream}")
    sent = []
    def strike():
        time.sleep(float(sys.argv[2]))
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=strike, daemon=True).start()
    try:
        # eval of a text would make Python end by the signal, although it was caught.
        eval(compile(call, "call", "eval"))
    except KeyboardInterrupt:
        print(time.monotonic() - sent[0])
    else:
        print("finished")
        threading.Event().wait(float(sys.argv[2]))
    # The engine can be used again.
    assert len(an.mondrian(an.census(100), k=5, quasi="age")) == 100
"""


@pytest.mark.parametrize("name", list(LONG))
def test_06_interrupted_within_300_ms(name: str) -> None:
    # The longer it takes, the surer it is struck on the way; a fast machine needs more rows for it.
    for rows, delay in ((600_000, 0.25), (600_000, 0.1), (600_000, 0.04), (3_000_000, 0.06), (15_000_000, 0.15)):
        script = textwrap.dedent(INTERRUPT.format(rows=rows, stream=rows * 2 // 3))
        done = subprocess.run([sys.executable, "-c", script, LONG[name], str(delay)], capture_output=True, text=True, timeout=300)
        last = done.stdout.strip().splitlines()[-1:] or [done.stderr[-2000:]]
        if last[0] == "finished" or "KeyboardInterrupt" in done.stderr:
            # It was quicker than that.
            continue
        assert done.returncode == 0, done.stderr
        print(f"{name}: KeyboardInterrupt {float(last[0]) * 1000:.0f} ms after the signal")
        assert float(last[0]) < 0.3
        return
    pytest.fail(f"{name} was too quick to be interrupted")


def test_06_an_interrupted_insert_can_be_run_again(tmp_path: pathlib.Path) -> None:
    """Wherever it is struck: the next one publishes the snapshot once, and the audit passes."""
    script = """
        import os, signal, sys, threading, time, warnings
        import datafusion_anonymize as an
        place, delay = sys.argv[1], float(sys.argv[2])
        who = dict(id="person_id", quasi=["age", "gender"], sensitive="occupation")
        people = an.census(60000, seed=1)
        def strike():
            time.sleep(delay)
            os.kill(os.getpid(), signal.SIGINT)
        publication = an.publication(place, method="m_invariant", m=5, schema=people, begin=True, **who)
        threading.Thread(target=strike, daemon=True).start()
        struck = False
        try:
            publication.insert(people)
            time.sleep(delay)
        except KeyboardInterrupt:
            struck = True
        warnings.simplefilter("ignore", an.Notice)
        again = an.publication(place, method="m_invariant", m=5, schema=people, begin=True, **who)
        inserted = again.insert(people)
        assert inserted.release == 1, inserted
        assert again.releases()["rows"][0] >= 60000 and again.audit().passed
        print(struck)
    """
    struck = 0
    for number, delay in enumerate((0.02, 0.06, 0.1, 0.15, 0.2, 0.3)):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), tmp_path / str(number), str(delay)], capture_output=True, text=True
        )
        if "KeyboardInterrupt" in done.stderr:
            continue
        assert done.returncode == 0, done.stderr
        struck += done.stdout.strip() == "True"
    print(f"{struck} of 6 inserts were struck")
    assert struck > 0


def test_07_other_threads_go_on() -> None:
    """While a release is computed, another thread of Python keeps four fifths of its ticks."""
    people = an.census(1_000_000, seed=1)

    def ticks(work) -> tuple[float, float]:
        count, stop = 0, threading.Event()

        def tick() -> None:
            nonlocal count
            while not stop.is_set():
                time.sleep(0.005)
                count += 1

        thread = threading.Thread(target=tick)
        thread.start()
        begin = time.monotonic()
        work()
        seconds = time.monotonic() - begin
        stop.set()
        thread.join()
        return count / seconds, seconds

    shares = []
    for _ in range(3):
        idle, _ = ticks(lambda: time.sleep(0.5))
        busy, seconds = ticks(lambda: an.m_invariant(people, m=10, **CENSUS))
        shares.append(busy / idle)
        if shares[-1] >= 0.8:
            break
    print(f"another thread kept {100 * max(shares):.0f} % of its ticks in {seconds:.2f} s")
    assert max(shares) >= 0.8


def forked(queue) -> None:
    try:
        an.census(10)
    except an.AnonymizeError as error:
        queue.put(str(error))
    else:
        queue.put("no error")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_07_fork_raises() -> None:
    an.census(10)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=forked, args=(queue,))
    process.start()
    message = queue.get(timeout=60)
    process.join(timeout=60)
    assert "forked" in message and "spawn" in message


def test_08_classes_and_messages_have_tests_of_their_own() -> None:
    import test_errors as tests

    assert hasattr(tests, "test_refusals_say_what_sql_says") and hasattr(tests, "test_no_message_has_a_value")
    assert issubclass(an.Refused, an.AnonymizeError) and issubclass(an.Conflict, an.AnonymizeError) and issubclass(an.Breach, an.AnonymizeError)
    assert an.AnonymizeError.__mro__[1] is Exception


def test_09_types(tmp_path: pathlib.Path) -> None:
    """mypy --strict on the package and on what a user writes; stubtest on the native part."""
    pytest.importorskip("mypy")
    package = ROOT / "python"
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", "pyproject.toml"], cwd=package, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    user = package / "tests" / "typed.py"
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(user)], cwd=package, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "datafusion_anonymize._native"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_10_as_fast_as_the_shell(shell: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A million rows in a file: the rows of the release in memory, in both. ANONYMIZE_MEASURE=1 makes 5 % a condition."""
    an.census(1_000_000, seed=1).write_parquet(tmp_path / "people.parquet")
    path = tmp_path / "people.parquet"
    roles = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation, private => true"
    query = f"CREATE TABLE r AS SELECT * FROM m_invariant('{path}', 10, {roles})"
    here, there = [], []
    for _ in range(5 if MEASURE else 2):
        begin = time.perf_counter()
        an.m_invariant(path, m=10, **CENSUS)
        here.append(time.perf_counter() - begin)
        # What the shell takes to start is not what is compared.
        begin = time.perf_counter()
        subprocess.run([shell, "-q", "-c", "SELECT 1"], check=True, capture_output=True)
        start = time.perf_counter() - begin
        begin = time.perf_counter()
        subprocess.run([shell, "-q", "-c", query], check=True, capture_output=True)
        there.append(time.perf_counter() - begin - start)
    over = min(here) / min(there) - 1
    print(f"1,000,000 rows, m = 10: Python {min(here):.2f} s, shell {min(there):.2f} s: {100 * over:+.1f} %")
    if MEASURE:
        assert over <= 0.05


def test_10_the_wheel_is_not_large() -> None:
    size = wheel().stat().st_size / 1e6
    print(f"the wheel has {size:.1f} MB")
    assert size <= 65


