//! Four releases, of columns and people that come later.

use std::sync::Arc;

use datafusion::error::Result;

use super::super::harness::Harness;
use super::super::input::Input;
use super::super::results::Point;
use super::{ADAPTIVE, P, arguments, columns, loss, original};

/// Quasi-identifiers of the paper's four releases: the seventh comes with the second, the sixth with the fourth.
const SUBSETS: [&[usize]; 4] = [&[2, 5], &[1, 7], &[1, 3, 4], &[6, 7]];
/// The same of tables with fewer columns. The last but one takes the place of the sixth, the last that of the seventh.
const KNOWN: usize = 5;

/// Shares of all people at each release.
const PEOPLE: [f64; 4] = [0.5, 0.75, 0.9, 1.0];

fn released(input: &Input, release: usize) -> Vec<String> {
    let all = input.quasi.len();
    if all >= 7 {
        return columns(input, SUBSETS[release]);
    }
    let late = |number: usize| input.quasi[(all + number).saturating_sub(8).min(all - 1)].clone();
    let early = |number: usize| input.quasi[(number - 1) % all.saturating_sub(2).max(1)].clone();
    let mut names: Vec<String> =
        SUBSETS[release].iter().map(|&number| if number > KNOWN { late(number) } else { early(number) }).collect();
    names.sort_by_key(|name| input.quasi.iter().position(|other| other == name));
    names.dedup();
    names
}

/// Returns the losses of the four releases of a figure: 15 (columns come), 16 (people come) or 17 (both).
pub(super) async fn four(
    harness: Arc<Harness>,
    figure: &'static str,
    l: usize,
    name: &'static str,
) -> Result<Vec<Point>> {
    let input = &harness.input;
    let (columns_come, people_come) = (figure != "16", figure != "15");
    let early: Vec<String> = if columns_come && name == ADAPTIVE {
        let mut first = [0, 2].into_iter().flat_map(|release| released(input, release)).collect::<Vec<_>>();
        first.extend(released(input, 1).into_iter().take(1));
        input.quasi.iter().filter(|name| first.contains(name)).cloned().collect()
    } else {
        input.quasi.clone()
    };
    let all = arguments(&harness, &early, "worlds");
    let everybody = if people_come { input.rows() } else { input.rows() / 2 };
    let (mut known, mut points) = (0, Vec::new());
    for (release, share) in PEOPLE.into_iter().enumerate() {
        let people = if people_come { (everybody as f64 * share) as usize } else { everybody };
        original(&harness, people)?;
        if people > known {
            let more = if known > 0 { ", worlds => known" } else { "" };
            harness.keep("worlds", &format!("SELECT * FROM sequential_worlds(original, {l}, {all}{more})")).await?;
            if known > 0 {
                // Columns say how they were made, and a table of both would be refused as one: rows go where rows of their kind are.
                harness.run("INSERT INTO known SELECT * FROM worlds").await?;
            } else {
                harness.keep("known", "SELECT * FROM worlds").await?;
            }
            known = people;
        }
        let quasi = if columns_come { released(input, release) } else { input.quasi.clone() };
        let some = arguments(&harness, &quasi, &format!("release {release}"));
        let call = format!("sequential_release(original, known, {some}, p => {P})");
        harness.keep("released", &format!("SELECT * FROM {call}")).await?;
        let lost = loss(&harness, "original", "released", &quasi, "lm").await?;
        points.push(Point::new(figure, name, (release + 1) as f64, lost));
        harness.step();
    }
    Ok(points)
}
