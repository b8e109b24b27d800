//! Whether a ledger of signatures and the releases it is of agree, over the whole history.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use rustc_hash::FxHashMap;

use super::audit::Check;
use super::released::ReleasedTable;
use crate::error::{Error, Result, thousands};
use crate::microdata::ColumnEncoder;

/// Groups and real rows of a release by signature.
type Hosts = FxHashMap<Vec<u32>, (usize, u64)>;

/// Signatures in a ledger and in its releases, in codes.
pub struct Histories {
    values: ColumnEncoder,
    ids: ColumnEncoder,
    /// Different identifiers.
    distinct: usize,
    entries: usize,
    nulls: usize,
    /// People by signature and the release that first had them.
    people: FxHashMap<Vec<u32>, BTreeMap<u64, u64>>,
    releases: Vec<(u64, Hosts)>,
}

impl Histories {
    /// Of a ledger with identifiers and signatures over values of these types.
    ///
    /// # Errors
    /// When a type cannot be grouped by.
    pub fn try_new(id: &DataType, value: &DataType) -> Result<Self> {
        let encoder =
            |data_type: &DataType| ColumnEncoder::try_new(FieldRef::new(Field::new("x", data_type.clone(), true)));
        Ok(Self {
            values: encoder(value)?,
            ids: encoder(id)?,
            distinct: 0,
            entries: 0,
            nulls: 0,
            people: FxHashMap::default(),
            releases: Vec::new(),
        })
    }

    /// Appends entries of the ledger: who, with which signature, first in which release.
    ///
    /// # Errors
    /// When a column is of another type.
    pub fn append_entries(&mut self, ids: &ArrayRef, signatures: &ArrayRef, releases: &ArrayRef) -> Result<()> {
        let mut codes = Vec::new();
        self.ids.intern(ids, &mut codes)?;
        // Codes are given in the order of arrival.
        self.distinct = codes.iter().max().map_or(0, |most| most + 1).max(self.distinct);
        self.entries += ids.len();
        self.nulls += ids.null_count() + signatures.null_count();
        let lists = signatures.as_list_opt::<i32>();
        let lists = lists.ok_or_else(|| Error::refused("the signatures of the ledger are not lists"))?;
        self.values.intern(lists.values(), &mut codes)?;
        let numbers = cast(releases, &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        for (row, ends) in lists.value_offsets().windows(2).enumerate() {
            let mut signature: Vec<u32> =
                codes[ends[0] as usize..ends[1] as usize].iter().map(|&code| code as u32).collect();
            signature.sort_unstable();
            let number = u64::try_from(numbers.value(row)).unwrap_or(0);
            *self.people.entry(signature).or_default().entry(number).or_default() += 1;
        }
        Ok(())
    }

    /// Appends a release by its number, in ascending order.
    ///
    /// # Errors
    /// When grouping fails.
    pub fn append_release(&mut self, number: u64, table: &ReleasedTable) -> Result<()> {
        let Some(values) = &table.values else { return Err(Error::refused("the release has no sensitive values")) };
        let mut codes = Vec::new();
        self.values.intern(values, &mut codes)?;
        let counterfeits = table.of_groups(&table.counterfeits);
        let mut hosts = Hosts::default();
        for ((histogram, &counterfeits), size) in table.histograms.iter().zip(&counterfeits).zip(table.sizes()) {
            let mut signature: Vec<u32> = histogram.iter().map(|&(value, _)| codes[value as usize] as u32).collect();
            signature.sort_unstable();
            let host = hosts.entry(signature).or_default();
            host.0 += 1;
            host.1 += size.saturating_sub(counterfeits.max(0) as u64);
        }
        self.releases.push((number, hosts));
        Ok(())
    }

    /// Bytes held, roughly.
    pub fn size(&self) -> usize {
        let hosts = self.releases.iter().map(|(_, hosts)| hosts.len()).sum::<usize>() + self.people.len();
        self.ids.size() + self.values.size() + hosts * 128
    }

    /// The checks: one signature of `m` values for everybody, and releases whose groups are those of the ledger's people.
    pub fn checks(&self, m: usize) -> Vec<Check> {
        let people: u64 = self.people.values().flat_map(BTreeMap::values).sum();
        let short: u64 =
            self.people.iter().filter(|(signature, _)| signature.len() < m).flat_map(|(_, n)| n.values()).sum();
        let repeated = self.entries - self.distinct;
        let mut checks = vec![
            Check::none(
                None,
                "ledger: one signature for everybody",
                repeated + self.nulls,
                self.entries,
                "entries are too many",
            ),
            Check::none(None, "ledger: signatures of m values", short as usize, people as usize, "are shorter"),
        ];
        for (number, hosts) in &self.releases {
            let (mut unknown, mut crowded, mut missing, mut groups) = (0, 0, 0, 0);
            let mut real = 0;
            for (signature, &(count, rows)) in hosts {
                groups += count;
                real += rows;
                // Everybody in the release has been published by then, with the signature of their group.
                let so_far = self.people.get(signature).map_or(0, |by| by.range(..=number).map(|(_, n)| n).sum());
                if so_far == 0 {
                    unknown += count;
                } else if rows > so_far {
                    crowded += (rows - so_far) as usize;
                }
            }
            let mut new = 0;
            for (signature, by) in &self.people {
                let fresh = by.get(number).copied().unwrap_or(0);
                new += fresh;
                missing += fresh.saturating_sub(hosts.get(signature).map_or(0, |host| host.1)) as usize;
            }
            let figures = format!(
                "{} of {} groups have signatures that nobody has, {} of {} real rows are more than there are people, {} of {} new \
                 people have no row",
                thousands(unknown),
                thousands(groups),
                thousands(crowded),
                thousands(real as usize),
                thousands(missing),
                thousands(new as usize)
            );
            let passed = unknown + crowded + missing == 0;
            checks.push(Check::new(Some(*number), "m-invariant: groups are of the ledger's people", passed, figures));
        }
        checks
    }
}
