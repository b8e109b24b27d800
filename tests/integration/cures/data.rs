//! Values, columns and rows that a method does not take as they are.

use super::{Here, between};

/// NULL in a sensitive column of every type: leave the rows out, or a value of the column's type.
#[test]
fn null_gets_a_value_that_its_column_can_have() {
    let here = Here::new();
    for column in ["disease", "income", "admitted", "flag"] {
        let call = |input: &str| {
            format!("SELECT count(*) AS n FROM anatomy({input}, 1 + 1, quasi => age, sensitive => {column})")
        };
        let text = here.refused(&[&call("'people.csv'")]);
        let condition = between(&text, "leave them out, WHERE ", ", or give NULL");
        let left = format!("SELECT * EXCLUDE ({column}), {column} FROM 'people.csv' WHERE {condition}");
        let value = between(&text, "a value of its own, ", ", which").replace(" (if nobody has -1)", "");
        let given = format!("SELECT * EXCLUDE ({column}), {value} FROM 'people.csv'");
        for query in [left, given] {
            // `flag` has too few values for people without one to be left out.
            let count = here.printed(&[&format!("SELECT count(*) - count({column}) AS nulls FROM ({query})")]);
            assert_eq!(count, "nulls\n0\n", "{query}");
            if column != "flag" {
                here.printed(&[&call(&format!("({query})"))]);
            }
        }
    }
    let text = here.refused(&["SELECT count(*) AS n FROM mondrian((SELECT * FROM 'people.csv' WHERE disease IS NOT NULL UNION ALL SELECT * FROM 'people.csv' WHERE disease IS NOT NULL), k => 2, id => \"MRN\", quasi => age, sensitive => disease)"]);
    let one = &text[text.find("keep one row of each, ").unwrap() + "keep one row of each, ".len()..];
    let one = one.replace("FROM t", "FROM 'people.csv'");
    let sql =
        format!("SELECT count(*) AS n FROM mondrian({one}, k => 2, id => \"MRN\", quasi => age, private => true)");
    assert_eq!(here.printed(&[&sql]), "n\n6\n");
    let text = here.refused(&["SELECT count(*) AS n FROM mondrian('people.csv', k => 2, id => income, quasi => age)"]);
    let condition = between(&text, "leave them out, ", " ");
    assert_eq!(condition, "WHERE");
    let condition = &text[text.find("WHERE").unwrap()..];
    let condition = condition.split_once(" NULL").unwrap().0;
    here.printed(&[&format!(
        "SELECT count(*) AS n FROM mondrian((SELECT * FROM 'people.csv' {condition} NULL), k => 2, id => income, quasi => age)"
    )]);
}

/// Names that need quotes, and columns of other types.
#[test]
fn columns_are_named_as_they_must_be() {
    let here = Here::new();
    let call = |id: &str| format!("SELECT count(*) AS n FROM mondrian('people.csv', k => 2, id => {id}, quasi => age)");
    let text = here.refused(&[&call("MRN")]);
    let name = between(&text, "did you mean ", "?");
    assert_eq!(name, "\"MRN\"");
    here.printed(&[&call(name)]);
    for (make, alias) in [
        ("make_array(age)", "age"),
        ("named_struct('years', age)", "age_years"),
        ("make_map('key', age)", "age_key"),
        ("CAST(admitted AS TIMESTAMP) - TIMESTAMP '2020-01-01'", "age"),
    ] {
        let table = format!("SELECT {make} AS age FROM 'people.csv' WHERE admitted IS NOT NULL");
        let text = here.refused(&[&format!("SELECT count(*) AS n FROM mondrian(({table}), k => 2, quasi => age)")]);
        let value = between(&text, "in its place, as ", ", in a query");
        here.printed(&[&format!(
            "SELECT count(*) AS n FROM mondrian((SELECT {value} FROM ({table})), k => 2, quasi => {alias})"
        )]);
    }
    let text =
        here.refused(&["SELECT count(*) AS n FROM m_invariant('people.csv', 2, quasi => age, sensitive => name)"]);
    let set = between(&text, "or ", ", or give");
    assert_eq!(set, "SET anonymize.id = 'patient_id'");
    let set = set.replace("patient_id", "MRN");
    here.printed(&[&set, "SELECT count(*) AS n FROM m_invariant('people.csv', 2, quasi => age, sensitive => name)"]);
}

/// A cast that fails names its column, and how the rows are found.
#[test]
fn failing_casts_name_their_column() {
    let here = Here::new();
    here.write("ages.csv", "id,age,disease\n1,20,flu\n2,thirty,cold\n3,40,flu\n4,50,cold\n");
    let call = |age: &str| {
        format!(
            "SELECT count(*) AS n FROM mondrian((SELECT id, {age} AS age, disease FROM 'ages.csv'), k => 2, quasi => age)"
        )
    };
    let text = here.refused(&[&call("CAST(age AS INT)")]);
    assert!(text.contains("a cast of column age to INT failed in the input") && !text.contains("thirty"), "{text}");
    let cure = between(&text, "write ", ", which");
    assert_eq!(here.printed(&[&call(cure)]), "n\n4\n");
    let count = between(&text, "such rows with ", " IS NULL").replace("FROM t", "FROM 'ages.csv'");
    assert!(here.printed(&[&format!("{count} IS NULL")]).ends_with("\n1\n"));
    let text = here.refused(&[
        "SELECT count(*) AS n FROM mondrian((SELECT CAST(age AS DATE) AS age FROM 'ages.csv'), k => 2, quasi => age)",
    ]);
    assert!(text.contains("a cast of column age to DATE"), "{text}");
    // Of several the first is not accused.
    let text = here.refused(&["SELECT count(*) AS n FROM mondrian((SELECT CAST(age AS INT) AS age, CAST(disease AS INT) AS d FROM 'ages.csv'), k => 2, quasi => (age, d))"]);
    assert!(text.contains("of one of the columns age, disease"), "{text}");
    // What an INSERT casts by itself.
    let declare = "CREATE EXTERNAL TABLE p (id BIGINT, age INT, s VARCHAR) STORED AS PUBLICATION LOCATION 'cast/' OPTIONS ('begin' 'true', 'method' 'm_invariant', 'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 's')";
    let text = here.refused(&[declare, "INSERT INTO p SELECT id, age, disease AS s FROM 'ages.csv'"]);
    assert!(text.contains("a cast of column age to INT"), "{text}");
}

/// Several rows of a person, and no identifier at all.
#[test]
fn advice_wants_one_row_per_person() {
    let here = Here::new();
    here.printed(&[
        "COPY (SELECT p.person_id AS \"MRN\", 'N' || p.person_id AS name, p.person_id * 10 + v.value AS visit, p.age, p.gender, p.occupation \
         AS disease FROM census(200, 1) p CROSS JOIN range(1, 4) v) TO 'visits.parquet'",
    ]);
    let text = here.refused(&["SELECT * FROM advise('visits.parquet', queries => 10)"]);
    assert!(text.contains("column MRN identifies people") && text.contains("nothing can be recommended"), "{text}");
    let query = &text[text.find("of the table, ").unwrap() + "of the table, ".len()..];
    let query = query.replace("FROM t", "FROM 'visits.parquet'");
    let call = here.printed(&[&format!(
        "SELECT call FROM advise({query}, rows => 200, queries => 10, seed => 1) WHERE recommended IS NOT NULL"
    )]);
    assert!(
        call.contains("id => \"\"MRN\"\"") && !call.contains("name") && call.contains("quasi => (age, gender)"),
        "{call}"
    );
}
