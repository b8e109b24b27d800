//! Files that are not what a session takes them for.

use super::{Here, between};

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
    let number = between(&text, "are texts there: ", " AS DOUBLE)").replace("(c,", "(income,");
    let sql = format!("SELECT sum({number} AS DOUBLE)) AS n FROM t");
    assert_eq!(here.printed(&[&statement, &sql]), "n\n4.0\n");
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
