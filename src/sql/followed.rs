//! Which releases `previous` is of, and which ones those were made with: a private view names them, so that one that is missing is found.

use std::collections::BTreeSet;

use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;

use super::described::schemas_of_files;
use super::opaque::OpaqueTable;
use super::table::AnonymizedTable;
use crate::error::{refusal, thousands};
use crate::microdata::Role;
use crate::release::{Description, PARTNERS, SIGNATURE};

/// Begins the metadata keys of the identifier of a private view that end with the id of the release, and of all releases that it was made with. Where
/// rows of several releases become one table, an engine drops what these say otherwise, or takes what one of them says; keys of their own it keeps
/// or drops together.
const OWN: &str = "anonymize.own.";
/// The same for the releases that it was made with, and that those were made with.
const FOLLOWS: &str = "anonymize.follows.";

/// The releases that a release is made with.
#[derive(Debug, Clone, Default)]
pub(super) struct Followed {
    /// Ids of releases whose rows are there.
    own: BTreeSet<String>,
    /// Ids of releases that these were made with.
    earlier: BTreeSet<String>,
    /// True if some rows are of a release that does not say which one it is.
    unknown: bool,
}

impl Followed {
    /// Reads which releases the tables of a relation are of. `session` finds what files say of themselves.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub(super) fn by(plan: &LogicalPlan, session: Option<&SessionState>) -> Result<Self> {
        let mut found = Self::default();
        plan.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(table) = source_as_provider(&scan.source)
            {
                match table.get_logical_plan() {
                    Some(view) => found.add(Self::by(view.as_ref(), session)?),
                    None => found.add_table(table.as_ref(), session)?,
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    }

    /// Adds what another relation is of.
    pub(super) fn add(&mut self, other: Self) {
        self.own.extend(other.own);
        self.earlier.extend(other.earlier);
        self.unknown |= other.unknown;
    }

    fn add_table(&mut self, table: &dyn TableProvider, session: Option<&SessionState>) -> Result<()> {
        let schema = table.schema();
        if OpaqueTable::<AnonymizedTable>::relation(table).is_some() {
            // Its id is another one in every query, though its rows are the same.
            self.earlier.extend(ids(&schema, FOLLOWS));
            return Ok(());
        }
        // Files can be of several releases, and the table then says nothing.
        let files = match session.filter(|_| table.is::<ListingTable>()) {
            Some(session) => schemas_of_files(table, session)?,
            None => Vec::new(),
        };
        match files.is_empty() {
            true => self.add_schema(&schema),
            false => files.iter().for_each(|file| self.add_schema(file)),
        }
        Ok(())
    }

    fn add_schema(&mut self, schema: &Schema) {
        let mut own = ids(schema, OWN);
        if own.is_empty() {
            let mut described = schema.fields().iter().filter_map(|field| Description::from_metadata(field.metadata()));
            own.extend(described.next().map(|description| description.release_id));
        }
        let remembers = [SIGNATURE, PARTNERS].iter().any(|name| schema.column_with_name(name).is_some());
        self.unknown |= own.is_empty() && remembers;
        self.own.extend(own);
        self.earlier.extend(ids(schema, FOLLOWS));
    }

    /// Returns true if rows are of a release that does not say which one it is, so that nobody can tell whether others are missing.
    pub(super) fn is_unknown(&self) -> bool {
        self.unknown
    }

    /// # Errors
    /// When releases are missing that those which are there were made with.
    pub(super) fn check(&self, function: &str, argument: &'static str) -> Result<()> {
        let missing = self.earlier.difference(&self.own).count();
        if missing == 0 {
            return Ok(());
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

    /// The columns of a release of this id that is made with these, so that the next one can be checked.
    pub(super) fn noted(&self, schema: SchemaRef, release_id: &str) -> SchemaRef {
        let is_id = |field: &FieldRef| field.metadata().get(Role::KEY).map(String::as_str) == Some(Role::Id.name());
        if !schema.fields().iter().any(is_id) {
            return schema;
        }
        let note = |field: &FieldRef| match is_id(field) {
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

/// The ids that keys of columns end with.
fn ids(schema: &Schema, key: &str) -> BTreeSet<String> {
    let keys = schema.fields().iter().flat_map(|field| field.metadata().keys());
    keys.filter_map(|name| name.strip_prefix(key)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;

    fn private_view(own: &str, with: &Followed) -> SchemaRef {
        let id = Field::new("id", DataType::Int64, true);
        let role = [(Role::KEY.to_owned(), Role::Id.name().to_owned())].into_iter().collect();
        let age = Field::new("age", DataType::Int64, true);
        with.noted(SchemaRef::new(Schema::new(vec![id.with_metadata(role), age])), own)
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

    /// As DataFusion's UNION makes one table of two.
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
}
