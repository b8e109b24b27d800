//! Parameters that the rows do not allow, in calls and publications.

use super::{Here, between};

/// A suggested parameter works, also with parts, cells and too few values.
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
