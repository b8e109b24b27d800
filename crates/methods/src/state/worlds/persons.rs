//! People of the memory's entries, numbered by their identifiers' keyed hash; most have one entry.

use crate::error::Result;
use crate::microdata::Identifiers;

pub(in crate::state) struct Persons {
    pub(in crate::state) people: usize,
    /// Person of each entry.
    pub(in crate::state) of_entry: Vec<u32>,
    /// Person at each place in the order of identifiers, if some have several entries. Of others it is the number of the place.
    at_rank: Vec<u32>,
}

impl Persons {
    /// Numbers the people by the identifiers of all entries.
    /// Fails when Arrow cannot compare values of the type.
    pub(super) fn try_new(known: &Identifiers) -> Result<Self> {
        let mut at = Vec::new();
        let mut people = known.len();
        if known.runs_of_several()?.next().is_some() {
            at.reserve_exact(known.len());
            people = 0;
            for run in known.runs()? {
                at.extend(run.iter().map(|_| people as u32));
                people += 1;
            }
        }
        let mut persons = Self { people, of_entry: Vec::new(), at_rank: at };
        persons.of_entry = vec![0; known.len()];
        for (rank, entry) in (0..).zip(known.order()) {
            persons.of_entry[entry as usize] = persons.at_rank(rank);
        }
        Ok(persons)
    }

    /// Returns the person whose identifier is at this place in the order.
    #[inline]
    pub(super) fn at_rank(&self, rank: u32) -> u32 {
        self.at_rank.get(rank as usize).copied().unwrap_or(rank)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::arrow::datatypes::DataType;

    use super::*;
    use crate::microdata::IdentifierBuilder;

    /// With everybody once, and with some of them several times: equal identifiers are one person, and others are others.
    #[test]
    fn equal_identifiers_are_one_person() {
        for distinct in [5000, 4000, 1, 0] {
            let entries = if distinct == 0 { 0 } else { 5000_i64 };
            let identifiers: Vec<i64> = (0..entries).map(|entry| entry * 7 % distinct).collect();
            let mut builder = IdentifierBuilder::new(DataType::Int64);
            let column: ArrayRef = Arc::new(Int64Array::from(identifiers.clone()));
            builder.append(&column).unwrap();
            let known = builder.clone().finish([3, 4]).unwrap();
            let persons = Persons::try_new(&known).unwrap();
            assert_eq!(persons.people as i64, distinct);
            let mut person_of = vec![None; persons.people];
            for (&identifier, &person) in identifiers.iter().zip(&persons.of_entry) {
                assert_eq!(*person_of[person as usize].get_or_insert(identifier), identifier);
            }
            assert!(person_of.iter().all(Option::is_some));
            let ranks = known.ranks_of(&builder.in_one_piece().unwrap(), [3, 4]).unwrap();
            let again = known.ranks_in(&known).unwrap();
            for (entry, &person) in persons.of_entry.iter().enumerate() {
                assert_eq!(ranks.at(entry).map(|rank| persons.at_rank(rank)), Some(person));
            }
            assert!(known.order().zip(again.iter()).all(|(entry, rank)| {
                rank.map(|rank| persons.at_rank(rank)) == Some(persons.of_entry[entry as usize])
            }));
        }
    }
}
