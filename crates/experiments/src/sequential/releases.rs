//! Ten releases, sequential and projected.

use std::sync::Arc;

use datafusion::error::Result;

use super::super::harness::Harness;
use super::super::results::Point;
use super::{PROJECTED, SEQUENTIAL, arguments, columns, loss, original};

/// Quasi-identifiers of the paper's ten releases.
pub(super) const SUBSETS: [&[usize]; 10] =
    [&[2, 6, 7], &[4, 5, 6, 7], &[3, 5], &[1], &[1, 2, 6, 7], &[1, 2, 3, 4], &[2, 3, 5], &[2, 5, 6], &[4], &[2, 3]];

/// Parameters of ten releases, and the figures that they are in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) people: usize,
    pub(super) l: usize,
    pub(super) p: usize,
    /// `lm` or `em`: what is kept small and measured.
    pub(super) loss: &'static str,
    pub(super) figures: &'static [&'static str],
}

pub(super) async fn ten(harness: Arc<Harness>, setting: Setting) -> Result<Vec<Point>> {
    let Setting { people, l, p, loss: measure, figures } = setting;
    original(&harness, people)?;
    let all = arguments(&harness, &harness.input.quasi, "worlds");
    let worlds = harness.keep("worlds", &format!("SELECT * FROM sequential_worlds(original, {l}, {all})")).await?;
    harness.keep("projected", &format!("SELECT * FROM non_sequential(original, {l}, {all})")).await?;
    harness.step();
    let (mut losses, mut seconds) = (Vec::new(), 0.0);
    for (number, subset) in SUBSETS.iter().enumerate() {
        let quasi = columns(&harness.input, subset);
        let some = arguments(&harness, &quasi, &format!("release {number}"));
        let call = format!("sequential_release(original, worlds, {some}, p => {p}, loss => '{measure}')");
        seconds += harness.keep("released", &format!("SELECT * FROM {call}")).await?;
        let sequential = loss(&harness, "original", "released", &quasi, measure).await?;
        losses.push([sequential, loss(&harness, "original", "projected", &quasi, measure).await?]);
        harness.step();
    }
    let count = losses.len() as f64;
    let mean = |which: usize| losses.iter().map(|both| both[which]).sum::<f64>() / count;
    let mut points = Vec::new();
    for &figure in figures {
        let x = match figure {
            "7" | "10" | "13" => l,
            "8" | "11" => people,
            _ => p,
        } as f64;
        match figure {
            "6" => {
                for (i, both) in losses.iter().enumerate() {
                    points.push(Point::new("6", SEQUENTIAL, (i + 1) as f64, both[0]));
                    points.push(Point::new("6", PROJECTED, (i + 1) as f64, both[1]));
                }
            }
            "10" | "11" | "12" => {
                points.push(Point::new(figure, "worlds", x, worlds));
                points.push(Point::new(figure, "a release, mean", x, seconds / count));
            }
            _ => {
                points.push(Point::new(figure, SEQUENTIAL, x, mean(0)));
                // Projections do not depend on p.
                if figure != "9" {
                    points.push(Point::new(figure, PROJECTED, x, mean(1)));
                }
            }
        }
    }
    Ok(points)
}
