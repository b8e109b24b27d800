"""Disclosure, comparisons and charts."""

from __future__ import annotations

import pathlib
from xml.etree import ElementTree

import pytest

import datafusion_anonymize as an
from shared import CENSUS, WHO


def test_careless_releases_give_people_away(q1: an.Table, q2: an.Table) -> None:
    first = an.m_invariant(q1, m=2, **WHO, seed=2)
    careful = an.m_invariant(q2, m=2, previous=first, **WHO)
    careless = an.m_invariant(q2, m=2, **WHO, seed=4)
    both = an.connect()
    both.register("q1", q1)
    both.register("q2", q2)
    stayed = both.sql("SELECT * FROM q1 WHERE patient_id IN (SELECT patient_id FROM q2)")
    for second, vulnerable in ((careful, False), (careless, True)):
        found = an.disclosure([first, second], original=stayed, **WHO, strength="group")
        assert (found.vulnerable > 0) == vulnerable
        assert "greatest risk" in repr(found)
    with pytest.raises(an.Refused, match="at least one release"):
        an.disclosure([], original=q1, **WHO)


def test_compared(people: an.Table, tmp_path: pathlib.Path) -> None:
    found = an.compare(people, {"m_invariant": {"m": [2, 5]}, "mondrian": {"k": [5]}, "anatomy": {"l": (3,)}}, queries=200, **CENSUS)
    rows = found.to_pylist()
    assert [(row["method"], row["setting"]) for row in rows] == [
        ("m_invariant", "m = 2"), ("m_invariant", "m = 5"), ("mondrian", "k = 5"), ("anatomy", "l = 3"),
    ]
    assert rows[0]["loss"] < rows[1]["loss"] and rows[3]["loss"] == 0 and all(row["median_error"] >= 0 for row in rows)
    chart = found.plot()
    assert len(chart.svg) == 3
    for picture in chart.svg:
        assert ElementTree.fromstring(picture).tag.endswith("svg")
    chart.save(tmp_path / "chart.html")
    assert (tmp_path / "chart.html").read_text().count("<svg") == 3
    one = found.plot()
    one.svg = one.svg[:1]
    one.save(tmp_path / "one.svg")
    ElementTree.parse(tmp_path / "one.svg")
    chart.save(tmp_path / "chart.SVG")
    stacked = ElementTree.parse(tmp_path / "chart.SVG").getroot()
    inner = [part for part in stacked if part.tag.endswith("svg")]
    assert len(inner) == 3 and [int(part.get("y", "-1")) for part in inner] == sorted({int(part.get("y", "-1")) for part in inner})
    assert int(stacked.get("height", "0")) == sum(int(part.get("height", "0")) for part in inner)
    for name in ("chart.png", "chart.pdf", "chart"):
        with pytest.raises(an.Refused, match=r"written as SVG or as a page, not as .*save\('chart.svg'\)"):
            chart.save(tmp_path / name)
        assert not (tmp_path / name).exists()
    with pytest.raises(an.Refused, match="there is no method mondrain"):
        an.compare(people, {"mondrain": {"k": 2}}, **CENSUS)
    with pytest.raises(an.Refused, match="unknown argument kk") as caught:
        an.compare(people, {"mondrian": {"kk": 2}}, **CENSUS)
    assert caught.value.argument == "kk"


def test_disclosure_plots_every_release(people: an.Table) -> None:
    releases = [an.m_invariant(people, m=3, **CENSUS) for _ in range(2)]
    picture = an.disclosure(releases, original=people, **CENSUS, strength="group").plot().svg[0]
    assert "release 1" in picture and "release 2" in picture
