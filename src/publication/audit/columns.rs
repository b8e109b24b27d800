//! Checks of the columns of a release: that they are those that were agreed, and say the truth about it.

use datafusion::arrow::datatypes::{FieldRef, SchemaRef};

use crate::methods::{AnyMethod, LeftOut};
use crate::microdata::{EACH_KEY, Role, Several, name_of_parts, parts_of_name};
use crate::publication::ledger_metadata::LedgerMetadata;
use crate::publication::record::Announcement;
use crate::release::{COUNTERFEITS, Description, GROUP_SIZE, View, reserved_names};
use crate::risk::Check;

/// Returns the columns of these roles, by the metadata that they carry.
pub(super) fn columns_of(schema: &SchemaRef, role: Role) -> Vec<String> {
    let has = |field: &&FieldRef| field.metadata().get(Role::KEY).and_then(|text| Role::parse(text)) == Some(role);
    schema.fields().iter().filter(has).map(|field| field.name().clone()).collect()
}

/// Returns the name of the value of several sensitive columns, and the columns; `None` for one column.
pub(super) fn sensitive_value(schema: &SchemaRef) -> Option<(String, Vec<String>)> {
    let columns = columns_of(schema, Role::Sensitive);
    (columns.len() > 1).then(|| (name_of_parts(&columns, several(schema)), columns))
}

/// Returns the subject of the bound, as the columns of a release say it.
pub(super) fn several(schema: &SchemaRef) -> Several {
    let each = schema.fields().iter().any(|field| field.metadata().contains_key(EACH_KEY));
    if each { Several::Each } else { Several::Together }
}

/// Returns the agreed sensitive columns that a release has, if it lacks some. It is a part of what was made then,
/// and its groups are not those of whole values.
pub(super) fn some_sensitive(schema: &SchemaRef, agreed: Option<&String>) -> Option<Vec<String>> {
    let there = columns_of(schema, Role::Sensitive);
    let agreed = agreed?;
    let whole = there.as_slice() == std::slice::from_ref(agreed) || name_of_parts(&there, several(schema)) == *agreed;
    // Names of stored columns have no commas.
    let parts = parts_of_name(agreed);
    (!whole && there.iter().all(|name| parts.contains(&name.as_str()))).then_some(there)
}

/// Checks that the columns are those of a public release, and truthful about it. Where groups are hidden, there are
/// no columns of them.
pub(super) fn described(
    schema: &SchemaRef,
    said: &Announcement,
    metadata: Option<&LedgerMetadata>,
    made_by: &AnyMethod,
) -> Vec<Check> {
    let number = Some(said.number);
    let published = [Role::Quasi, Role::Sensitive, Role::Within, Role::Other, Role::Insensitive]
        .map(|role| columns_of(schema, role));
    let roles = metadata.map(|metadata| &metadata.spec.roles);
    let agreed = |name: &String| {
        roles.is_none_or(|roles| roles.columns().filter(|column| Some(*column) != roles.id.as_ref()).any(|c| c == name))
    };
    // Several sensitive columns are one value to the method.
    let value = sensitive_value(schema);
    // Those that a release lacks are remembered, where a method does that.
    let left_out = made_by.as_method().leaves_out();
    let some = (left_out == LeftOut::Remembered)
        .then(|| some_sensitive(schema, roles.and_then(|roles| roles.sensitive.as_ref())))
        .flatten();
    let of_value = |name: &String| {
        value.as_ref().is_some_and(|(whole, parts)| parts.contains(name) && agreed(whole))
            || some.as_ref().is_some_and(|parts| parts.contains(name))
    };
    let expected: Vec<&String> = published.iter().flatten().filter(|name| agreed(name) || of_value(name)).collect();
    let in_groups = made_by.form().has_groups();
    let own: &[&str] = match (in_groups, made_by.state().is_some_and(|kind| kind.facts().counted)) {
        (true, _) => reserved_names(View::Public),
        (false, true) => &[GROUP_SIZE, COUNTERFEITS],
        (false, false) => &[],
    };
    let foreign = |field: &&FieldRef| !own.contains(&field.name().as_str()) && !expected.contains(&field.name());
    let foreign = schema.fields().iter().filter(foreign).count();
    let missing = own.iter().filter(|name| schema.field_with_name(name).is_err()).count()
        + roles.map_or(0, |roles| {
            let may_lack =
                |column: &String| left_out != LeftOut::Nothing && (!in_groups || roles.quasi.contains(column));
            let public = roles.columns().filter(|column| Some(*column) != roles.id.as_ref() && !may_lack(column));
            let there = |column: &String| {
                expected.contains(&column)
                    || value.as_ref().is_some_and(|(whole, _)| whole == column)
                    || some.is_some() && roles.sensitive.as_ref() == Some(column)
            };
            public.filter(|column| !there(column)).count()
        });
    let columns = schema.fields().len();
    let truth = Description::new(&said.method, said.parameters.clone(), said.release_id.clone(), number);
    let lies = |field: &&FieldRef| Description::from_metadata(field.metadata()).as_ref() != Some(&truth);
    let mut checks = vec![
        Check::none(number, "no column beyond the roles", foreign + missing, columns, "columns are foreign or missing"),
        Check::none(
            number,
            "columns say what made them",
            schema.fields().iter().filter(lies).count(),
            columns,
            "do not",
        ),
    ];
    if let Some(metadata) = metadata {
        let method = &metadata.spec.method;
        let parameters = metadata.spec.parameters_text();
        let apart = said.apart == metadata.spec.keeps_apart();
        let same = method.name() == said.method && parameters.is_ok_and(|text| text == said.parameters) && apart;
        let figures = match same {
            true => "the same method and parameters",
            false if !apart => "the release says otherwise whether anybody looks for people who are in two releases",
            false => "another method or other parameters",
        };
        checks.push(Check::new(number, "made as was agreed", same, figures));
    }
    checks
}
