"""Measures a released table with pycanon, a tool that nobody here wrote: k, l, entropy l, t.

usage: measure.py release.csv sensitive quasi..
"""

import sys

import pandas
from pycanon import anonymity

path, sensitive, *quasi = sys.argv[1:]
release = pandas.read_csv(path, dtype={name: str for name in quasi})
print(
    anonymity.k_anonymity(release, quasi),
    anonymity.l_diversity(release, quasi, [sensitive]),
    anonymity.entropy_l_diversity(release, quasi, [sensitive]),
    anonymity.t_closeness(release, quasi, [sensitive]),
)
