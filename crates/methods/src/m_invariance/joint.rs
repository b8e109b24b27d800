//! Chains of releases to a reader who combines people: everybody keeps as many values as m says, in some assignment of everybody.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use proptest::prelude::*;

use super::tests::{Known, chains, private, publish, verify};
use super::{Balance, MInvariance, OnIneligible, drawn};
use crate::risk::{AdversaryModel, BackgroundColumns, Disclosure, EvidenceBuilder, ReleaseColumns};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn everybody_keeps_m_values_together(
        (snapshots, m) in chains(),
        (blind, draws) in any::<(bool, bool)>(),
        on_ineligible in prop_oneof![Just(OnIneligible::Refuse), Just(OnIneligible::Counterfeit), Just(OnIneligible::Withhold)],
        seed in any::<u64>(),
    ) {
        let balance = if blind { Balance::Blind } else { Balance::Minimal };
        let params = MInvariance::of_cohort(m).with_balance(balance).with_on_ineligible(on_ineligible);
        let domain: Vec<String> = (0..9).map(|value| format!("v{value}")).collect();
        let (mut known, mut first) = (Known::new(), BTreeSet::new());
        let field = |name: &str, data_type: DataType| FieldRef::new(Field::new(name, data_type, true));
        let id = field("id", DataType::Int64);
        let mut reader = EvidenceBuilder::try_new(id, Vec::new(), field("disease", DataType::Utf8)).unwrap();
        let mut versions = 0;
        for snapshot in snapshots {
            // Refused snapshots are no releases.
            let release = match draws {
                true => drawn::publish(&snapshot, &known, &first, &domain, m, seed),
                false => publish(&snapshot, &known, &params, seed),
            };
            let Ok(release) = release else { continue };
            let withheld = release.withheld;
            let batch = private(release, seed);
            verify(&batch, &snapshot, &mut known, m, withheld);
            if first.is_empty() {
                first = known.keys().copied().collect();
            }
            versions += snapshot.len() - withheld;
            reader.begin_release(ReleaseColumns { group: true, id: true });
            let column = |name: &str| (name.to_owned(), batch.column_by_name(name).unwrap().clone());
            let columns = ["disease", "group_id", "id"].map(column);
            reader.append_release(&RecordBatch::try_from_iter_with_nullable(
                columns.into_iter().map(|(name, column)| (name, column, true)),
            ).unwrap()).unwrap();
        }
        let ids: ArrayRef = Arc::new(known.keys().copied().collect::<Int64Array>());
        let people = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        reader.append_known(&people, BackgroundColumns { sensitive: false, release: false }).unwrap();
        let disclosure = Disclosure::try_new(reader.finish().unwrap(), AdversaryModel::Joint).unwrap();
        let mut found = 0;
        for findings in disclosure.all() {
            for place in 0..findings.people.len() {
                prop_assert!(findings.undecided.get(place).is_empty());
                prop_assert!(findings.remaining.size(place) >= m, "{:?}", findings.remaining.get(place));
                prop_assert_eq!(findings.remaining.get(place), findings.candidates.get(place));
                found += 1;
            }
        }
        prop_assert_eq!(found, versions);
    }
}
