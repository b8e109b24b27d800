//! A dry run over snapshots of the past, one after the other: what of them an INSERT would refuse.

use std::collections::hash_map::Entry;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::FieldRef;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result, thousands};
use crate::microdata::{ColumnEncoder, Encoded, Order};

/// Rule of how values may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Changes {
    /// Changes as the update relation says, over any number of its pairs.
    Listed,
    /// Changes in any way.
    Any,
    /// By a law: from snapshot to snapshot one pair of the relation, or none; and of new people, too many can have values that can become alike.
    Law,
}

/// People of a snapshot whose value differs from their last snapshot's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change {
    /// Number of the snapshot, from 1.
    pub(crate) snapshot: u32,
    /// The value that they had, and the one that they have.
    pub(crate) values: [u32; 2],
    pub(crate) person: u32,
}

/// A value that too many of a snapshot's new people have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frequent {
    /// Number of the snapshot, from 1.
    pub(crate) snapshot: u32,
    pub(crate) value: u32,
    /// Number of people who have it.
    pub(crate) people: u64,
}

/// Findings of the dry run. Values and people are codes of the encoded columns.
pub(crate) struct Findings {
    pub(crate) people: Encoded,
    pub(crate) values: Encoded,
    /// By snapshot, values and person.
    pub(crate) changes: Vec<Change>,
    /// By snapshot and value.
    pub(crate) frequent: Vec<Frequent>,
}

/// Reads the update relation, then the snapshots.
pub(crate) struct DryRun {
    changes: Changes,
    /// At most this part of new people may have one value, one in so many; `None` if there is no such limit.
    m: Option<u64>,
    people: ColumnEncoder,
    values: ColumnEncoder,
    becomes: FxHashMap<u32, Vec<u32>>,
    /// Values that each value can become, with the least number of pairs on the way.
    reach: FxHashMap<u32, FxHashMap<u32, u32>>,
    /// Of everybody, by code: the last snapshot that had them, and their value in it.
    last: Vec<(u32, u32)>,
    snapshot: u32,
    nulls: usize,
    repeated: usize,
    new: FxHashMap<u32, u64>,
    found: Vec<Change>,
    frequent: Vec<Frequent>,
}

impl DryRun {
    /// Begins with people and values of these columns.
    /// Fails when DataFusion cannot group by one of the types.
    pub(crate) fn try_new(id: FieldRef, sensitive: FieldRef, changes: Changes, m: Option<u64>) -> Result<Self> {
        Ok(Self {
            changes,
            m,
            people: ColumnEncoder::try_new(id)?,
            values: ColumnEncoder::try_new(sensitive)?,
            becomes: FxHashMap::default(),
            reach: FxHashMap::default(),
            last: Vec::new(),
            snapshot: 0,
            nulls: 0,
            repeated: 0,
            new: FxHashMap::default(),
            found: Vec::new(),
            frequent: Vec::new(),
        })
    }

    /// Appends rows of the update relation, all of them before the first snapshot.
    /// Fails when DataFusion's grouping fails.
    pub(crate) fn append_updates(&mut self, from: &ArrayRef, to: &ArrayRef) -> Result<()> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.values.intern(from, &mut before)?;
        self.values.intern(to, &mut after)?;
        for (from, to) in before.into_iter().zip(after) {
            self.becomes.entry(from as u32).or_default().push(to as u32);
        }
        Ok(())
    }

    /// Begins the rows of the next snapshot.
    /// Fails when the one before cannot be published at all.
    pub(crate) fn begin_snapshot(&mut self) -> Result<()> {
        self.end_snapshot()?;
        self.snapshot += 1;
        Ok(())
    }

    /// Appends rows of a snapshot.
    /// Fails when DataFusion's grouping fails.
    pub(crate) fn append(&mut self, ids: &ArrayRef, values: &ArrayRef) -> Result<()> {
        let (mut people, mut codes) = (Vec::new(), Vec::new());
        self.people.intern(ids, &mut people)?;
        self.values.intern(values, &mut codes)?;
        for (row, (person, value)) in people.into_iter().zip(codes).enumerate() {
            if ids.is_null(row) || values.is_null(row) {
                self.nulls += 1;
                continue;
            }
            let value = value as u32;
            if person >= self.last.len() {
                self.last.resize(person + 1, (0, 0));
            }
            let (snapshot, before) = std::mem::replace(&mut self.last[person], (self.snapshot, value));
            if snapshot == self.snapshot {
                self.repeated += 1;
            } else if snapshot == 0 {
                *self.new.entry(value).or_default() += 1;
            } else if !self.allows(before, value, self.snapshot - snapshot) {
                self.found.push(Change { snapshot: self.snapshot, values: [before, value], person: person as u32 });
            }
        }
        Ok(())
    }

    pub(crate) fn size(&self) -> usize {
        self.people.size()
            + self.values.size()
            + self.last.capacity() * size_of::<(u32, u32)>()
            + self.found.capacity() * size_of::<Change>()
            + self.becomes.values().map(|to| to.capacity() * 4 + 48).sum::<usize>()
            + self.reach.values().map(|to| to.capacity() * 9 + 48).sum::<usize>()
    }

    /// Returns all that was found.
    /// Fails when the last snapshot cannot be published at all.
    pub(crate) fn finish(mut self) -> Result<Findings> {
        self.end_snapshot()?;
        let (people, values) = (self.people.finish(Order::ByValue)?, self.values.finish(Order::ByValue)?);
        let mut changes = self.found;
        for change in &mut changes {
            change.person = people.ranks[change.person as usize];
            change.values = change.values.map(|value| values.ranks[value as usize]);
        }
        changes.sort_unstable();
        let mut frequent = self.frequent;
        frequent.iter_mut().for_each(|found| found.value = values.ranks[found.value as usize]);
        frequent.sort_unstable();
        Ok(Findings { people, values, changes, frequent })
    }

    fn allows(&mut self, from: u32, to: u32, snapshots: u32) -> bool {
        if from == to || self.changes == Changes::Any {
            return true;
        }
        let becomes = &self.becomes;
        let reached = match self.reach.entry(from) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let (mut pairs, mut last, mut seen) = (0, vec![from], FxHashMap::default());
                while !last.is_empty() {
                    pairs += 1;
                    let next = last.iter().filter_map(|value| becomes.get(value)).flatten();
                    let next: FxHashSet<u32> = next.copied().filter(|next| !seen.contains_key(next)).collect();
                    seen.extend(next.iter().map(|&next| (next, pairs)));
                    last = next.into_iter().collect();
                }
                unknown.insert(seen)
            }
        };
        let pairs = reached.get(&to);
        pairs.is_some_and(|pairs| self.changes != Changes::Law || *pairs <= snapshots)
    }

    /// Adds up the people of values that can become alike, under the most frequent one. By a law, a group has one of
    /// them. By a law, a group has one of these.
    fn alike(&self, new: FxHashMap<u32, u64>) -> FxHashMap<u32, u64> {
        if self.changes != Changes::Law {
            return new;
        }
        // The component of each value that can change: its least one.
        let mut component: FxHashMap<u32, u32> = FxHashMap::default();
        let pairs = || self.becomes.iter().flat_map(|(from, to)| to.iter().map(move |to| (*from, *to)));
        loop {
            let mut changed = false;
            for (from, to) in pairs() {
                let of = |value: u32| component.get(&value).copied().unwrap_or(value);
                let least = of(from).min(of(to));
                for value in [from, to] {
                    changed |= component.insert(value, least) != Some(least);
                }
            }
            if !changed {
                break;
            }
        }
        let mut together: FxHashMap<u32, (u64, u64, u32)> = FxHashMap::default();
        for (value, people) in new {
            let entry = together.entry(component.get(&value).copied().unwrap_or(value)).or_default();
            entry.0 += people;
            if (people, std::cmp::Reverse(value)) > (entry.1, std::cmp::Reverse(entry.2)) {
                (entry.1, entry.2) = (people, value);
            }
        }
        together.into_values().map(|(all, _, value)| (value, all)).collect()
    }

    fn end_snapshot(&mut self) -> Result<()> {
        let number = self.snapshot;
        let wrong = [
            (std::mem::take(&mut self.nulls), "rows without an identifier or a sensitive value"),
            (std::mem::take(&mut self.repeated), "rows that repeat an identifier"),
        ];
        if let Some((count, what)) = wrong.into_iter().find(|(count, _)| *count > 0) {
            return Err(Error::refused(format!(
                "snapshot {number} has {} {what}; an INSERT refuses it as a whole",
                thousands(count)
            )));
        }
        let new = std::mem::take(&mut self.new);
        let all: u64 = new.values().sum();
        if let Some(m) = self.m {
            let too_many = self.alike(new).into_iter().filter(|(_, people)| people.saturating_mul(m) > all);
            self.frequent.extend(too_many.map(|(value, people)| Frequent { snapshot: number, value, people }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray, Int64Array, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type};

    use super::*;

    type Snapshot<'a> = &'a [(Option<i64>, &'a str)];

    fn rehearse(
        snapshots: &[Snapshot<'_>],
        updates: &[(&str, &str)],
        changes: Changes,
        m: Option<u64>,
    ) -> Result<Findings> {
        let field = |name: &str, data_type: DataType| Arc::new(Field::new(name, data_type, true));
        let (id, value) = (field("id", DataType::Int64), field("value", DataType::Utf8));
        let mut rehearsal = DryRun::try_new(id, value, changes, m)?;
        let texts = |texts: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
        rehearsal.append_updates(
            &texts(updates.iter().map(|pair| pair.0).collect()),
            &texts(updates.iter().map(|pair| pair.1).collect()),
        )?;
        for snapshot in snapshots {
            rehearsal.begin_snapshot()?;
            let ids: ArrayRef = Arc::new(snapshot.iter().map(|row| row.0).collect::<Int64Array>());
            rehearsal.append(&ids, &texts(snapshot.iter().map(|row| row.1).collect()))?;
        }
        rehearsal.finish()
    }

    fn changes(found: &Findings) -> Vec<(u32, i64, String, String)> {
        let (people, values) = (found.people.attribute.domain.values(), found.values.attribute.domain.values());
        let text = |code: u32| values.as_string_view().value(code as usize).to_owned();
        let rows = found.changes.iter().map(|change| {
            let who = people.as_primitive::<Int64Type>().value(change.person as usize);
            (change.snapshot, who, text(change.values[0]), text(change.values[1]))
        });
        rows.collect()
    }

    #[test]
    fn changes_are_looked_at_from_the_last_snapshot_that_had_somebody() {
        let snapshots: [Snapshot<'_>; 4] = [
            &[(Some(1), "a"), (Some(2), "b"), (Some(3), "c")],
            &[(Some(2), "a"), (Some(3), "c")],
            &[(Some(3), "a")],
            &[(Some(3), "a"), (Some(1), "c"), (Some(2), "a")],
        ];
        let updates = [("a", "b"), ("b", "c")];
        let found = rehearse(&snapshots, &updates, Changes::Listed, None).unwrap();
        let row = |snapshot, who, from: &str, to: &str| (snapshot, who, from.to_owned(), to.to_owned());
        // 1 goes from a to c in two steps, which is possible.
        assert_eq!(changes(&found), [row(2, 2, "b", "a"), row(3, 3, "c", "a")]);
        assert!(rehearse(&snapshots, &[], Changes::Any, None).unwrap().changes.is_empty());
        let none = rehearse(&snapshots, &[], Changes::Listed, None).unwrap();
        assert_eq!(changes(&none).len(), 3);
    }

    #[test]
    fn values_that_too_many_new_people_have_are_found() {
        let snapshots: [Snapshot<'_>; 2] =
            [&[(Some(1), "a"), (Some(2), "a"), (Some(3), "b"), (Some(4), "c")], &[(Some(1), "a"), (Some(5), "b")]];
        let found = rehearse(&snapshots, &[], Changes::Any, Some(2)).unwrap();
        let b = found.values.attribute.domain.values().as_string_view().value(found.frequent[0].value as usize);
        assert_eq!((found.frequent.len(), found.frequent[0].snapshot, found.frequent[0].people, b), (1, 2, 1, "b"));
    }

    #[test]
    fn by_a_law_changes_take_their_time_and_values_that_become_alike_are_one() {
        let snapshots: [Snapshot<'_>; 3] = [
            &[(Some(1), "a"), (Some(2), "b"), (Some(3), "d"), (Some(4), "e")],
            &[(Some(1), "c"), (Some(3), "d")],
            &[(Some(2), "c"), (Some(4), "e"), (Some(1), "c")],
        ];
        let updates = [("a", "b"), ("b", "c")];
        let found = rehearse(&snapshots, &updates, Changes::Law, Some(2)).unwrap();
        // 1 would need two snapshots; 2 has had them.
        assert_eq!(changes(&found), [(2, 1, "a".to_owned(), "c".to_owned())]);
        assert!(found.frequent.is_empty(), "two of four, which is half");
        let found = rehearse(&snapshots[..1], &updates, Changes::Law, Some(3)).unwrap();
        let value = found.values.attribute.domain.values().as_string_view().value(found.frequent[0].value as usize);
        assert_eq!((found.frequent.len(), found.frequent[0].people, value), (1, 2, "a"));
        assert!(rehearse(&snapshots[..1], &updates, Changes::Listed, Some(3)).unwrap().frequent.is_empty());
    }

    #[test]
    fn what_no_insert_would_take_is_refused_without_values() {
        let refusal = |snapshot: Snapshot<'_>| match rehearse(&[&[], snapshot], &[], Changes::Any, None) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("accepted"),
        };
        let repeated = refusal(&[(Some(7), "secret"), (Some(7), "secret")]);
        assert!(repeated.contains("snapshot 2 has 1 rows that repeat") && !repeated.contains("secret"), "{repeated}");
        assert!(refusal(&[(None, "a")]).contains("without an identifier"));
    }
}
