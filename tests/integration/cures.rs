//! Runs what refusals say would do: the SQL is cut out of the message.

use std::path::Path;

use tempfile::{TempDir, tempdir};

use super::support::{err, out, shell};

/// Runs statements in a directory.
struct Here(TempDir);

/// People of whom one has no diagnosis, one no income, and one a spelled age.
const PEOPLE: &str = "MRN,name,age,income,admitted,flag,disease\n\
    1,Ann,20,100,2024-01-05,true,flu\n2,Bob,25,,2024-02-05,,cold\n3,Cid,30,300,,false,flu\n4,Dan,35,400,2024-04-05,true,\n\
    5,Eve,40,500,2024-05-05,true,cold\n6,Fay,45,600,2024-06-05,false,ulcer\n";

impl Here {
    fn new() -> Self {
        let here = Self(tempdir().unwrap());
        here.write("people.csv", PEOPLE);
        here
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path().join(file), text).unwrap();
    }

    /// Statements of one session; what the last one prints.
    fn printed(&self, sql: &[&str]) -> String {
        let output = shell(self.path(), &[&["-q", "--format", "csv", "-c"], sql].concat());
        assert!(output.status.success(), "{sql:?}: {}", err(&output));
        out(&output)
    }

    /// Returns what the shell says of statements of which one is refused, on one line.
    fn refused(&self, sql: &[&str]) -> String {
        let output = shell(self.path(), &[&["-q", "-c"], sql].concat());
        assert!(!output.status.success(), "{sql:?} should be refused: {}", out(&output));
        err(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let start = text.find(before).unwrap_or_else(|| panic!("{before:?} is not in {text}")) + before.len();
    let end = text[start..].find(after).unwrap_or_else(|| panic!("{after:?} does not follow {before:?} in {text}"));
    text[start..start + end].trim()
}

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

/// A parameter that is said to do does, also where there are parts, cells and too few values.
#[test]
fn lower_parameters_do() {
    let here = Here::new();
    let make = "CREATE TABLE t AS SELECT person_id, age, gender, CASE WHEN person_id % 3 = 0 THEN 0 ELSE 1 + person_id % 8 END AS often FROM census(300, 3)";
    let roles = "quasi => (age, gender), sensitive";
    let calls = [
        format!("mondrian(t, l => <9>, {roles} => often)"),
        format!("mondrian(t, l => <30>, {roles} => often)"),
        format!("mondrian(t, l => <9>, diversity => 'entropy', {roles} => often)"),
        format!("mondrian(t, l => <30>, diversity => 'distinct', {roles} => often)"),
        format!("mondrian(t, k => <1000>, {roles} => often)"),
        "mondrian(t, k => <200>, within => gender, quasi => age, sensitive => often)".to_owned(),
        "mondrian(t, l => <9>, within => gender, quasi => age, sensitive => often)".to_owned(),
        format!("anatomy(t, l => <9>, {roles} => often)"),
        format!("muco(t, 0.5, l => <9>, {roles} => often)"),
        format!("m_invariant(t, m => <9>, id => person_id, {roles} => often)"),
        format!("m_invariant(t, m => <30>, id => person_id, {roles} => often)"),
        format!("m_distinct(t, m => <9>, updates => 'any', id => person_id, {roles} => often)"),
        format!("m_invariant(t, m => <9>, id => person_id, {roles} => often, cells => 2)"),
    ];
    for call in calls {
        let (before, after) = call.split_once('<').unwrap();
        let after = after.split_once('>').unwrap().1;
        let with = |value: &str| format!("SELECT count(*) AS n FROM {before}{value}{after}");
        let asked = between(&call, "<", ">").to_owned();
        let text = here.refused(&[make, &with(&asked)]);
        let name = before.rsplit_once(" =>").unwrap().0.rsplit([' ', '(']).next().unwrap();
        let value = between(&text, &format!("lower {name} ({name} => "), " would do)");
        let printed = here.printed(&[make, &with(value)]);
        assert_ne!(printed, "n\n0\n", "{call}: {text}");
        // The next one would not have done, unless that was asked for.
        let next = value.parse::<u64>().unwrap() + 1;
        assert!(
            next.to_string() == asked || call.contains("cells") || {
                here.refused(&[make, &with(&next.to_string())]);
                true
            }
        );
    }
    // One value in every second row: there is no l to propose.
    let text = here.refused(&["SELECT count(*) AS n FROM mondrian((SELECT age, 'a' AS s FROM 'people.csv' UNION ALL SELECT 9, 'b'), l => 2, quasi => age, sensitive => s)"]);
    assert!(!text.contains("would do") && !text.contains("l = 1"), "{text}");
    assert!(text.contains("add rows of other values"), "{text}");
    let distinct = "SELECT count(*) AS n FROM mondrian((SELECT age, 'a' AS s FROM 'people.csv' UNION ALL SELECT 9, 'b'), l => 2, diversity => 'distinct', quasi => age, sensitive => s)";
    assert!(text.contains("write diversity => 'distinct'"), "{text}");
    here.printed(&[distinct]);
    let text = here.refused(&[
        make,
        "SELECT count(*) AS n FROM m_invariant(t, 9, id => person_id, quasi => age, sensitive => often)",
    ]);
    assert!(text.contains("or write on_ineligible => 'counterfeit'"), "{text}");
    here.printed(&[make, "SELECT count(*) AS n FROM m_invariant(t, 9, id => person_id, quasi => age, sensitive => often, on_ineligible => 'counterfeit')"]);
}

/// Statements that are refused, with `<..>` in the place of what is wrong; what stands around the cure in the message; and what a table `t` of people is
/// made of before. The cure takes the place of `<..>`.
const CURED: &[(&str, [&str; 2])] = &[
    ("mondrian(t, <k = 2>, quasi => age)", ["write ", " instead of"]),
    ("mondrian(t<>, quasi => age)", ["for example ", ""]),
    ("mondrian(t, <quas> => age, k => 2)", ["did you mean ", "?"]),
    ("mondrian(t, k => 2, quasi => <agee>)", ["did you mean ", "?"]),
    ("mondrian(<tt>, k => 2, quasi => age)", ["did you mean ", "?"]),
    ("mondrian((SELECT * FROM t <> LIMIT 100), k => 2, id => person_id, quasi => age)", ["for example ", ""]),
    ("muco(t, <0.05>, l => 5, quasi => age, sensitive => often)", ["can be from ", " up to"]),
    (
        "m_distinct(t, <3>, updates => 'any', previous => first, id => person_id, quasi => age, sensitive => often)",
        ["that they allow is ", ""],
    ),
    (
        "m_distinct(t, 2, updates => chain<>, id => person_id, quasi => age, sensitive => often)",
        ["add them (", " does)"],
    ),
    (
        "reposition((SELECT *, TIMESTAMP '2020-01-01' AS ts FROM t), 2, window => 3, time => ts, sensitive => often<>)",
        ["for example ", ""],
    ),
];

#[test]
fn what_is_written_instead_runs() {
    let here = Here::new();
    let made = [
        "CREATE TABLE t AS SELECT person_id, age, gender, 1 + person_id % 8 AS often FROM census(300, 3)",
        "CREATE TABLE first AS SELECT * FROM m_distinct(t, 2, updates => 'any', id => person_id, quasi => age, sensitive => often, private => true)",
        "CREATE TABLE chain AS SELECT * FROM (VALUES (1, 2), (2, 3)) v (from_value, to_value)",
    ];
    for (call, [before, after]) in CURED {
        let (head, rest) = call.split_once('<').unwrap();
        let (wrong, tail) = rest.split_once('>').filter(|(wrong, _)| !wrong.contains('(')).unwrap();
        // Of an arrow in what is wrong, the end is the second one.
        let (wrong, tail) = match wrong.ends_with('=') {
            true => tail.split_once('>').map(|(more, tail)| (format!("{wrong}>{more}"), tail)).unwrap(),
            false => (wrong.to_owned(), tail),
        };
        let with = |cure: &str| format!("SELECT count(*) AS n FROM {head}{cure}{tail}");
        let text = here.refused(&[&made[..], &[with(&wrong).as_str()]].concat());
        let start = text.find(before).unwrap_or_else(|| panic!("{before:?}: {text}")) + before.len();
        let end = if after.is_empty() { text.len() } else { start + text[start..].find(after).unwrap() };
        let cure = &text[start..end];
        let cure = match wrong.is_empty() && head.ends_with(|c: char| c.is_alphanumeric()) {
            true => format!(", {cure}"),
            false => cure.to_owned(),
        };
        here.printed(&[&made[..], &[with(&cure).as_str()]].concat());
    }
    // Of another method, and with several releases that are numbered.
    let other = "CREATE TABLE other AS SELECT * FROM m_invariant(t, 2, id => person_id, quasi => age, sensitive => often, private => true)";
    let next = |previous: &str| {
        format!(
            "SELECT count(*) AS n FROM m_distinct(t, 2, updates => 'any', {previous} id => person_id, quasi => age, sensitive => often)"
        )
    };
    let text = here.refused(&[&made[..], &[other, &next("previous => other,")]].concat());
    assert!(text.contains("previous is a release of m_invariant, which m_distinct cannot continue"), "{text}");
    let drawn = "m_invariant(t, 2, assignment => 'drawn', id => person_id, quasi => age, sensitive => often";
    let first = format!("CREATE OR REPLACE TABLE first AS SELECT * FROM {drawn}, private => true)");
    let text = here.refused(&[made[0], &first, &format!("SELECT count(*) AS n FROM {drawn}, previous => first)")]);
    let numbered = between(&text, "previous => (", " UNION ALL");
    here.printed(&[made[0], &first, &format!("SELECT count(*) AS n FROM {drawn}, previous => ({numbered}))")]);
    let text = here.refused(&["SELECT * FROM anatomy('people.csv', 2, quasi => age, sensitive => (disease, income))"]);
    let input = between(&text, "make one of them: ", " FROM ..)");
    let sensitive = &text[text.find("FROM ..), ").unwrap() + "FROM ..), ".len()..];
    let left = "FROM 'people.csv' WHERE disease IS NOT NULL AND income IS NOT NULL)";
    here.printed(&[&format!("SELECT count(*) AS n FROM anatomy({input} {left}, 2, quasi => age, {sensitive})")]);
}

/// Refusals say in a publication what can be done there: what it began with stays.
#[test]
fn publications_are_told_what_publications_can_do() {
    let here = Here::new();
    let declare = |options: &str, place: &str| {
        format!(
            "CREATE EXTERNAL TABLE p (id BIGINT, age BIGINT, s VARCHAR) STORED AS PUBLICATION LOCATION '{place}/' OPTIONS ('method' \
             'm_invariant', {options}, 'id' 'id', 'quasi' 'age', 'sensitive' 's')"
        )
    };
    let rows = "INSERT INTO p VALUES (1, 20, 'a'), (2, 30, 'a'), (3, 40, 'b'), (4, 50, 'c')";
    let begun = declare("'begin' 'true', 'm' '3'", "begun");
    let text = here.refused(&[&begun, rows]);
    let option = between(&text, "declare the publication anew with ", " (nothing was published yet)");
    assert_eq!(option, "'m' '2'");
    here.printed(&[&declare(&format!("'begin' 'true', {option}"), "begun"), rows]);
    let padded = between(&text, "or declare it with ", ";");
    assert_eq!(padded, "'on_ineligible' 'counterfeit'");
    here.printed(&[&declare(&format!("'begin' 'true', 'm' '3', {padded}"), "padded"), rows]);
    // Later on m and on_ineligible stay, and are not proposed.
    let begun = declare("'m' '2'", "begun");
    let next =
        "INSERT INTO p VALUES (1, 20, 'a'), (2, 30, 'a'), (3, 40, 'b'), (4, 50, 'c'), (5, 33, 'a'), (6, 44, 'a')";
    let text = here.refused(&[&begun, next]);
    assert!(!text.contains("lower m") && !text.contains("on_ineligible"), "{text}");
    assert!(text.contains("INSERT a later snapshot with new rows of other values"), "{text}");
    here.printed(&[&begun, &format!("{next}, (7, 34, 'b'), (8, 45, 'c')")]);
    // The ledger of another method is called that.
    let other = "CREATE EXTERNAL TABLE p (id BIGINT, age BIGINT, s VARCHAR) STORED AS PUBLICATION LOCATION 'begun/' OPTIONS ('method' \
                 'm_distinct', 'm' '2', 'updates' 'any', 'id' 'id', 'quasi' 'age', 'sensitive' 's')";
    let text = here.refused(&[other, rows]);
    assert!(text.contains("m_invariant") && !text.contains("earlier version"), "{text}");
}

/// Files that are there, and are not what a session takes them for.
#[test]
fn files_are_declared_as_they_are() {
    let here = Here::new();
    here.write("p.tsv", "age\tdisease\n20\tflu\n30\tcold\n");
    here.write("p.jsonl", "{\"age\": 20, \"disease\": \"flu\"}\n{\"age\": 30, \"disease\": \"cold\"}\n");
    here.write("plain", "age,disease\n20,flu\n30,cold\n");
    here.write("excel.csv", "age;income;disease\n20;1,5;flu\n30;2,5;cold\n");
    here.write("dotted.csv", "age;income;disease\n20;1.5;flu\n30;2.5;cold\n");
    for file in ["p.tsv", "p.jsonl", "./plain", "excel.csv", "dotted.csv"] {
        let call =
            |input: &str| format!("SELECT count(*) AS n FROM anatomy({input}, 2, quasi => age, sensitive => disease)");
        let text = here.refused(&[&call(&format!("'{file}'"))]);
        assert!(!text.contains("not found"), "{text}");
        let statement = format!("CREATE EXTERNAL TABLE {}", between(&text, "CREATE EXTERNAL TABLE ", ", and name t"));
        assert_eq!(here.printed(&[&statement, &call("t")]), "n\n2\n", "{statement}");
    }
    let text = here.refused(&["SELECT * FROM 'excel.csv'"]);
    let statement = format!("CREATE EXTERNAL TABLE {}", between(&text, "CREATE EXTERNAL TABLE ", ", and name t"));
    let number = between(&text, "are texts there: ", " AS DOUBLE)");
    let sql = format!("SELECT sum({number} AS DOUBLE)) AS n FROM t");
    assert_eq!(here.printed(&[&statement, &sql]), "n\n4.0\n");
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

/// Files of a Delta table by themselves.
#[test]
fn files_of_delta_tables_name_their_table() {
    let here = Here::new();
    here.printed(&[
        "CREATE EXTERNAL TABLE p (id BIGINT, age INT, s VARCHAR) STORED AS PUBLICATION LOCATION 'lake/p/' OPTIONS ('begin' 'true', 'method' 'm_invariant', \
         'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 's')",
        "INSERT INTO p VALUES (1, 20, 'a'), (2, 30, 'b')",
    ]);
    let public = here.path().join("lake/p");
    let file = std::fs::read_dir(public).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let file = file.into_iter().find(|file| file.ends_with(".parquet")).unwrap();
    for name in [format!("lake/p/{file}"), "lake/p/*.parquet".to_owned()] {
        let text = here.refused(&[&format!("SELECT * FROM '{name}'")]);
        let query = between(&text, "Name the table: ", " in the shell");
        assert_eq!(query, "SELECT * FROM 'lake/p/'", "{text}");
        assert_eq!(here.printed(&[&query.replace('*', "count(*) AS n")]), "n\n2\n");
        let statement = &text[text.find("CREATE EXTERNAL TABLE t").unwrap()..];
        let statement = &statement[..statement.rfind('\'').unwrap() + 1];
        assert_eq!(here.printed(&[statement, "SELECT count(*) AS n FROM t"]), "n\n2\n", "{statement}");
    }
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
