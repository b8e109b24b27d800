"""Writes a Delta table in several versions and prints what is in the newest: year, number of rows, sum of identifiers."""

import os
import sys

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

table = sys.argv[1]


def people(ids):
    ids = list(ids)
    return pa.table({"id": ids, "age": [20 + i % 50 for i in ids], "year": [2023 + i % 3 for i in ids]})


write_deltalake(table, people(range(0, 500)), partition_by=["year"])
write_deltalake(table, people(range(1000, 1100)), mode="overwrite")
for start in range(2000, 2100, 10):
    write_deltalake(table, people(range(start, start + 10)), mode="append")
DeltaTable(table).create_checkpoint()
DeltaTable(table).delete("id % 7 = 0")
newest = DeltaTable(table).to_pyarrow_table().group_by("year").aggregate([("id", "count"), ("id", "sum")]).to_pylist()
for row in sorted(newest, key=lambda row: row["year"]):
    print(f"{row['year']},{row['id_count']},{row['id_sum']}")
sys.stdout.flush()
# Threads of pyarrow may outlive the interpreter and abort it.
os._exit(0)
