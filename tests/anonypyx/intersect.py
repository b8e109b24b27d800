"""The intersection attack of AnonyPyx, a tool that nobody here wrote, on released tables.

usage: intersect.py people.csv sensitive quasi,.. release.csv..

people.csv has the columns ID (0, 1, ..) and q_min, q_max of each quasi-identifier q; releases have q_min, q_max and the
sensitive value. Prints a line for each person: the values that are left, in order.
"""

import sys

import pandas
from anonypyx.attackers.intersection_attacker import IntersectionAttacker
from anonypyx.generalisation.machinereadable import MachineReadable

people, sensitive, quasi, *releases = sys.argv[1:]
quasi = quasi.split(",")
people = pandas.read_csv(people)
schema = MachineReadable({}, {name: (f"{name}_min", f"{name}_max") for name in quasi}, [sensitive])
attacker = IntersectionAttacker(people, quasi, sensitive, schema)
for release in releases:
    attacker.observe(pandas.read_csv(release), quasi + [sensitive], range(len(people)))
for person in range(len(people)):
    print(*sorted(int(value) for value in attacker.predict(person, sensitive)))
