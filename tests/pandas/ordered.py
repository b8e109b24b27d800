"""Writes ordered.parquet, as pandas 3.1 and pyarrow 26 do: python tests/pandas/ordered.py."""

from pathlib import Path

import pandas as pd

BANDS = ["under 5", "5-9", "10-14", "15-19", "20 and over"]

# In the order of texts 10-14 comes first and under 5 last; nobody is 15 to 19.
there = ["5-9", "10-14", "under 5", "20 and over"]
frame = pd.DataFrame(
    {
        "id": range(1, 13),
        "band": pd.Categorical([there[i % 4] for i in range(12)], categories=BANDS, ordered=True),
        "town": pd.Categorical([("b", "a")[i % 2] for i in range(12)]),
        "disease": [("flu", "cold", "gastritis")[i % 3] for i in range(12)],
    }
)
frame.to_parquet(Path(__file__).with_name("ordered.parquet"), index=False, row_group_size=6)
