"""Side by side with AnonyPyx on ADULT's classic 30,162 rows: the same quasi-identifiers, k and (distinct) l; loss and time of both are printed."""

from __future__ import annotations

import os
import pathlib
import time

import pytest

import datafusion_anonymize as an
from shared import ROOT

K, L = 20, 3
QUASI = ["age", "education_num", "hours_per_week", "marital_status", "race", "sex", "workclass"]


def adult() -> pathlib.Path:
    place = pathlib.Path(os.environ.get("ANONYMIZE_MICRODATA", ROOT.parent / "shared" / "data")) / "adult.parquet"
    if not place.exists():
        pytest.skip("ADULT is not here")
    return place


def test_side_by_side_on_adult() -> None:
    anonypyx = pytest.importorskip("anonypyx")
    polars = pytest.importorskip("polars")
    people = polars.read_parquet(adult()).filter(polars.col("is_complete") & (polars.col("split") == "train"))
    # Both take categories as whole numbers in the order of the alphabet, which AnonyPyx has no other way to generalize to ranges.
    texts = [name for name in QUASI if people.schema[name] == polars.String]
    people = people.select("occupation", *QUASI).with_columns(
        *(polars.col(name).rank("dense").cast(polars.Int64) for name in texts),
        *(polars.col(name).cast(polars.Int64) for name in QUASI if name not in texts),
    )
    assert people.height == 30162

    begin = time.perf_counter()
    ours = an.mondrian(people, k=K, l=L, diversity="distinct", quasi=QUASI, sensitive="occupation")
    our_seconds = time.perf_counter() - begin
    groups = ours.to_polars().group_by("group_id").agg(polars.len(), polars.col("occupation").n_unique())
    assert groups["len"].min() >= K and groups["occupation"].min() >= L

    frame = people.to_pandas()
    begin = time.perf_counter()
    made = anonypyx.Anonymiser(frame, k=K, l=L, diversity_definition="distinct", feature_columns=QUASI, sensitive_column="occupation")
    rows = made.anonymise()
    their_seconds = time.perf_counter() - begin
    rows = rows[0] if isinstance(rows, tuple) else rows

    # Their rows are values with counts; the same measure takes both.
    con = an.connect()
    con.register("rows", rows)
    structs = ", ".join(f"named_struct('lo', CAST({q}_min AS BIGINT), 'hi', CAST({q}_max AS BIGINT)) AS {q}" for q in QUASI)
    repeated = f"SELECT {structs}, unnest(range(0, CAST(\"count\" AS BIGINT))) AS copy FROM rows"
    theirs = con.sql(f"SELECT * EXCLUDE (copy) FROM ({repeated})")
    assert len(theirs) == len(ours) == people.height
    our_loss, their_loss = ours.loss().total, an.loss(people, theirs, quasi=QUASI).total
    assert our_loss is not None and their_loss is not None and 0 < our_loss < 1 and 0 < their_loss < 1
    print(
        f"ADULT, k = {K}, l = {L} (distinct), {len(QUASI)} quasi-identifiers: ours lm {our_loss:.4f} in {our_seconds:.2f} s, "
        f"AnonyPyx lm {their_loss:.4f} in {their_seconds:.2f} s"
    )
