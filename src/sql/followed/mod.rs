//! Reads the ids of releases from private views, and finds releases that `previous` lacks.

mod tables;

pub(super) use tables::keeps_everybody;

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::Result;

use crate::error::{refusal, thousands};
use crate::microdata::Role;
use crate::release::{FOLLOWS, OWN, PART, PARTNERS, SIGNATURE};

/// The releases that a release is made with.
#[derive(Debug, Clone, Default)]
pub(super) struct Followed {
    /// Ids of releases whose rows are there.
    own: BTreeSet<String>,
    /// Ids of releases that these were made with.
    earlier: BTreeSet<String>,
    /// Ids of releases of which rows were left out when they were stored.
    partial: BTreeSet<String>,
    /// Releases of tables and files: the id of each, and those it was made with.
    releases: BTreeMap<String, BTreeSet<String>>,
    /// True if some rows' release is unknown, or a query can leave out its rows.
    unknown: bool,
}

impl Followed {
    /// Adds what another relation is of.
    pub(super) fn add(&mut self, other: Self) {
        self.own.extend(other.own);
        self.earlier.extend(other.earlier);
        self.partial.extend(other.partial);
        self.releases.extend(other.releases);
        self.unknown |= other.unknown;
    }

    fn add_schema(&mut self, schema: &Schema) {
        let own = ids(schema, OWN);
        let earlier = ids(schema, FOLLOWS);
        self.unknown |= own.is_empty();
        if let (Some(one), 1) = (own.first(), own.len()) {
            self.releases.insert(one.clone(), earlier.clone());
        }
        self.own.extend(own);
        self.partial.extend(ids(schema, PART));
        self.earlier.extend(earlier);
    }

    /// Returns true if some of these releases were made with some of the others.
    pub(super) fn follows(&self, others: &Self) -> bool {
        !self.earlier.is_disjoint(&others.own)
    }

    /// Returns true if two of these releases were made without each other. Everybody in both was drawn twice then.
    pub(super) fn is_forked(&self) -> bool {
        let apart = |(one, before): (&String, &BTreeSet<String>)| {
            let mut others = self.releases.range::<String, _>(one..).skip(1);
            others.any(|(other, before_other)| !before.contains(other) && !before_other.contains(one))
        };
        self.releases.iter().any(apart)
    }

    /// Counts the releases that these were made with: more than any of those has.
    pub(super) fn depth(&self) -> usize {
        self.earlier.len()
    }

    /// Returns true if rows are of an unknown release or a part of one. Nobody can tell then whether people are
    /// missing.
    pub(super) fn is_unknown(&self) -> bool {
        self.unknown
    }

    /// # Errors
    /// When releases are missing that those which are there were made with, and when people of a release can be missing.
    pub(super) fn check(&self, function: &str, argument: &'static str) -> Result<()> {
        let missing = self.earlier.difference(&self.own).count();
        if missing == 0 {
            return self.check_whole(function, argument);
        }
        let (what, form) = match argument {
            "previous" => ("private views", "('q1_private.parquet', 'q2_private.parquet')"),
            _ => ("worlds", "(SELECT * FROM 'worlds_1.parquet' UNION ALL SELECT * FROM 'worlds_2.parquet')"),
        };
        Err(refusal!(
            function,
            argument argument,
            "{argument} lacks {} of the {} earlier releases: what it has was made with {}, and people who were only in what is missing would be \
             taken for new ones, which can give them away. Pass the {what} of all earlier releases, in their order, for example {argument} => {form}",
            thousands(missing),
            thousands(self.own.union(&self.earlier).count()),
            if missing == 1 { "it" } else { "them" }
        ))
    }

    /// Fails when rows of a release were left out when it was stored.
    fn check_whole(&self, function: &str, argument: &'static str) -> Result<()> {
        if self.partial.is_empty() {
            return Ok(());
        }
        let (what, form) = match argument {
            "previous" => ("private view", "previous => 'q1_private.parquet'"),
            _ => ("worlds", "worlds => 'worlds_1.parquet'"),
        };
        Err(refusal!(
            function,
            argument argument,
            "{argument} has a stored copy of which rows were left out (WHERE, LIMIT, JOIN), and people who are not in it would be taken for new ones. \
             Pass the whole {what} as it was written: {form}"
        ))
    }

    /// Returns the columns of a release with its id and those it is made with. So the next one can be checked.
    pub(super) fn noted(&self, schema: SchemaRef, release_id: &str) -> SchemaRef {
        let is_id = |field: &FieldRef| field.metadata().get(Role::KEY).map(String::as_str) == Some(Role::Id.name());
        if !schema.fields().iter().any(is_id) {
            return schema;
        }
        // One of them can be computed in a copy, and then says nothing.
        let is_noted = |field: &FieldRef| is_id(field) || [SIGNATURE, PARTNERS].contains(&field.name().as_str());
        let note = |field: &FieldRef| match is_noted(field) {
            true => {
                let mut metadata = field.metadata().clone();
                metadata.insert(format!("{OWN}{release_id}"), String::new());
                let earlier = self.own.union(&self.earlier).map(|id| (format!("{FOLLOWS}{id}"), String::new()));
                metadata.extend(earlier);
                FieldRef::new(field.as_ref().clone().with_metadata(metadata))
            }
            false => FieldRef::clone(field),
        };
        SchemaRef::new(Schema::new(schema.fields().iter().map(note).collect::<Vec<_>>()))
    }
}

/// Returns the ids that keys of columns end with.
fn ids(schema: &Schema, key: &str) -> BTreeSet<String> {
    let keys = schema.fields().iter().flat_map(|field| field.metadata().keys());
    keys.filter_map(|name| name.strip_prefix(key)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::datasource::empty::EmptyTable;
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::release::COUNTERFEIT_MARK;

    fn private_view(own: &str, with: &Followed) -> SchemaRef {
        let id = Field::new("id", DataType::Int64, true);
        let role = [(Role::KEY.to_owned(), Role::Id.name().to_owned())].into_iter().collect();
        let age = Field::new("age", DataType::Int64, true);
        let signature = Field::new(SIGNATURE, DataType::Int64, true);
        let mark = Field::new(COUNTERFEIT_MARK, DataType::Boolean, true);
        with.noted(SchemaRef::new(Schema::new(vec![id.with_metadata(role), age, signature, mark])), own)
    }

    fn of(schemas: &[&Schema]) -> Followed {
        let mut found = Followed::default();
        schemas.iter().for_each(|schema| found.add_schema(schema));
        found
    }

    #[test]
    fn a_release_that_is_missing_is_noticed() {
        let first = private_view("a", &Followed::default());
        let second = private_view("b", &of(&[&first]));
        let third = private_view("c", &of(&[&first, &second]));
        for (given, missing) in [
            (vec![&*first], None),
            (vec![&*second], Some("lacks 1 of the 2")),
            (vec![&*third, &*first], Some("lacks 1 of the 3")),
            (vec![&*third], Some("lacks 2 of the 3")),
            (vec![&*second, &*third, &*first], None),
        ] {
            let checked = of(&given).check("m_invariant", "previous");
            match missing {
                Some(missing) => assert!(checked.unwrap_err().to_string().contains(missing), "{missing}"),
                None => assert!(checked.is_ok()),
            }
        }
        assert!(third.field(1).metadata().is_empty(), "what is published says nothing of it");
    }

    /// Checks that a table of several releases says all or nothing, as with UNION.
    #[test]
    fn tables_of_several_releases_say_all_or_nothing() {
        let first = private_view("a", &Followed::default());
        let second = private_view("b", &of(&[&first]));
        let both = Schema::try_merge([first.as_ref().clone(), second.as_ref().clone()]).unwrap();
        let found = of(&[&both]);
        assert!(found.check("m_invariant", "previous").is_ok() && found.own.len() == 2);
        let third = private_view("c", &found);
        assert!(of(&[&both, &third]).check("m_invariant", "previous").is_ok());
        assert!(of(&[&third]).check("m_invariant", "previous").is_err());
    }

    #[tokio::test]
    async fn rows_that_can_be_missing_are_noticed() {
        let context = SessionContext::new();
        let first = private_view("a", &Followed::default());
        let second = private_view("b", &of(&[&first]));
        let unnamed = SchemaRef::new(Schema::new(
            first.fields().iter().map(|f| f.as_ref().clone().with_metadata([].into())).collect::<Vec<_>>(),
        ));
        let plain = SchemaRef::new(Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::Int64, true),
        ]));
        for (name, schema) in [("q1", first), ("q2", second), ("unnamed", unnamed), ("renamed", plain)] {
            context.register_table(name, Arc::new(EmptyTable::new(schema))).unwrap();
        }
        let both = |first: &str| format!("SELECT id, signature FROM {first} UNION ALL SELECT id, signature FROM q2");
        for (query, is_unknown) in [
            (both("q1"), false),
            (both("(SELECT CAST(id AS INT) AS id, age AS years, signature FROM q1 ORDER BY id)"), false),
            (both("(SELECT DISTINCT id, signature FROM q1)"), false),
            (both("(SELECT id, max(signature) AS signature FROM q1 GROUP BY id)"), false),
            (both("q1 WHERE id IS NOT NULL"), false),
            (both(&format!("q1 WHERE id IS NOT NULL AND NOT {COUNTERFEIT_MARK}")), false),
            (both(&format!("q1 WHERE {COUNTERFEIT_MARK} = false")), false),
            (both(&format!("q1 WHERE {COUNTERFEIT_MARK}")), true),
            (both("q1 WHERE false"), true),
            (both("q1 WHERE id > 30"), true),
            (both("(SELECT * FROM q1 LIMIT 0)"), true),
            (both("(SELECT DISTINCT ON (age) id, signature FROM q1)"), true),
            (both("(SELECT max(id) AS id, signature FROM q1 GROUP BY signature)"), true),
            (both("(SELECT id + 0 AS id, signature FROM q1)"), true),
            (both("(SELECT CASE WHEN id > 30 THEN id END AS id, signature FROM q1)"), true),
            ("SELECT q2.id, q2.signature FROM q1 RIGHT JOIN q2 ON q1.id = q2.id".to_owned(), true),
            ("SELECT id, signature FROM q1 INTERSECT SELECT id, signature FROM q2".to_owned(), true),
            ("SELECT * FROM q1 UNION ALL SELECT * FROM unnamed".to_owned(), true),
            ("SELECT id, signature FROM q1 UNION ALL SELECT a AS id, b AS signature FROM renamed".to_owned(), true),
            ("SELECT a AS id, b AS signature FROM renamed".to_owned(), true),
            // Under another name first.
            (both("(SELECT who AS id, signature FROM (SELECT id AS who, signature FROM q1))"), false),
            (both("(SELECT who AS id, signature FROM (SELECT id + 0 AS who, signature FROM q1))"), true),
            (
                both("(SELECT who AS id, signature FROM (SELECT id AS who, signature FROM q1) WHERE who IS NOT NULL)"),
                false,
            ),
            ("SELECT id, signature FROM q1 UNION ALL SELECT id + 0, signature FROM q2".to_owned(), true),
            ("SELECT id, signature FROM q1 UNION ALL VALUES (1, 2)".to_owned(), true),
        ] {
            let plan = context.sql(&query).await.unwrap().into_unoptimized_plan();
            let found = Followed::by(&plan, Some("id"), None).unwrap();
            assert_eq!(found.is_unknown(), is_unknown, "{query}");
        }
    }

    /// Two that were made with the first one, and not with each other.
    #[test]
    fn releases_that_know_nothing_of_each_other_are_noticed() {
        let first = private_view("a", &Followed::default());
        let second = private_view("b", &of(&[&first]));
        let also_second = private_view("0", &of(&[&first]));
        let third = private_view("c", &of(&[&first, &second]));
        for (given, is_forked) in [
            (vec![&*first, &*second, &*third], false),
            (vec![&*third, &*second, &*first], false),
            (vec![&*second, &*first, &*second], false),
            (vec![&*first, &*second, &*also_second], true),
            (vec![&*also_second, &*first, &*second], true),
        ] {
            assert_eq!(of(&given).is_forked(), is_forked);
        }
    }

    /// Either column says it when the other is computed; a description alone does not.
    #[test]
    fn a_copy_that_is_computed_says_it_still() {
        let first = private_view("a", &Followed::default());
        let second = private_view("b", &of(&[&first]));
        let without = |places: &[usize]| {
            let plain = |(place, field): (usize, &FieldRef)| match places.contains(&place) {
                true => field.as_ref().clone().with_metadata([].into()),
                false => field.as_ref().clone(),
            };
            Schema::new(second.fields().iter().enumerate().map(plain).collect::<Vec<_>>())
        };
        for computed in [[0], [2]] {
            let found = of(&[&without(&computed)]);
            assert!(found.check("m_invariant", "previous").is_err() && !found.is_unknown(), "{computed:?}");
        }
        assert!(of(&[&without(&[0, 2])]).is_unknown());
    }

    #[test]
    fn a_later_release_follows() {
        let first = private_view("a", &Followed::default());
        let second = private_view("b", &of(&[&first]));
        let (first, second) = (of(&[&first]), of(&[&second]));
        assert!(second.follows(&first) && !first.follows(&second) && first.depth() < second.depth());
    }
}
