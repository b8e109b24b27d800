//! The SQL that does what is recommended, to be pasted.

use datafusion::arrow::datatypes::Schema;

use super::bench::{TableRoles, quoted};
use super::settings::Setting;
use crate::microdata::sql_type;

/// Returns the statements to run for a setting that is recommended.
pub(super) fn script(setting: &Setting, table: &str, people: &TableRoles, schema: &Schema) -> String {
    let call = setting.call(table, &people.roles(), "");
    match setting.method.has_memory() {
        true => publication(setting, table, people, schema).unwrap_or_else(|| {
            let private = setting.call(table, &people.roles(), ", private => true");
            format!("CREATE TABLE release1 AS\nSELECT * FROM {private};")
        }),
        false => format!("COPY (SELECT * FROM {call})\nTO 'release.parquet' STORED AS PARQUET;"),
    }
}

/// Returns a publication with the columns that have roles; `None` where its options cannot name them.
fn publication(setting: &Setting, table: &str, people: &TableRoles, schema: &Schema) -> Option<String> {
    let [sensitive] = people.sensitive.as_slice() else { return None };
    let names: Vec<&String> = std::iter::once(&people.id).chain(&people.quasi).chain([sensitive]).collect();
    if names.iter().any(|name| quoted(name) != **name) {
        return None;
    }
    let column = |name: &&String| Some(format!("{name} {}", sql_type(schema.field_with_name(name).ok()?.data_type())?));
    let columns = names.iter().map(column).collect::<Option<Vec<_>>>()?.join(", ");
    let names = names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let reader = setting.method.reader().map(|reader| format!(", 'reader' '{reader}'")).unwrap_or_default();
    Some(format!(
        "CREATE EXTERNAL TABLE publication ({columns})\nSTORED AS PUBLICATION LOCATION 'publication/'\nOPTIONS ('begin' 'true', 'method' '{}', '{}' \
         '{}'{reader}, 'id' '{}', 'quasi' '{}', 'sensitive' '{sensitive}');\nINSERT INTO publication SELECT {names} FROM {table};",
        setting.method.name(),
        setting.method.parameter(),
        setting.value,
        people.id,
        people.quasi.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::super::settings::Tried;
    use super::*;
    use crate::microdata::Several;

    #[test]
    fn publications_declare_what_has_a_role() {
        let field = |name, data_type| Field::new(name, data_type, true);
        let schema = Schema::new(vec![
            field("zip", DataType::UInt16),
            field("id", DataType::Int64),
            field("disease", DataType::Utf8View),
            field("note", DataType::Utf8),
            field("Age", DataType::Int8),
        ]);
        let people = |quasi: &str| TableRoles {
            id: "id".to_owned(),
            has_id: true,
            quasi: vec![quasi.to_owned()],
            sensitive: vec!["disease".to_owned()],
            several: Several::Each,
            exact: Vec::new(),
            largest: 9,
        };
        let setting = Setting { method: Tried::of("m_invariant", "m"), value: 3 };
        let text = script(&setting, "t", &people("zip"), &schema);
        assert!(text.contains("(id BIGINT, zip INT, disease VARCHAR)") && text.contains("'m' '3'"), "{text}");
        assert!(text.ends_with("INSERT INTO publication SELECT id, zip, disease FROM t;"), "{text}");
        let participant = Setting { method: Tried::of("m_invariant", "m (participant)"), value: 3 };
        let text = script(&participant, "t", &people("zip"), &schema);
        assert!(text.contains("'m' '3', 'reader' 'participant', 'id'"), "{text}");
        // An option cannot name this one.
        let text = script(&setting, "t", &people("Age"), &schema);
        assert!(text.starts_with("CREATE TABLE release1 AS") && text.contains("quasi => \"Age\""), "{text}");
        let text = script(&Setting { method: Tried::of("anatomy", "l"), value: 3 }, "t", &people("zip"), &schema);
        assert!(text.starts_with("COPY (SELECT * FROM anatomy(t, 3, "), "{text}");
    }
}
