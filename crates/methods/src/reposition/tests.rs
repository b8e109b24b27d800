//! Tests of the algorithm against the optimum, of streams' promises, and of the paper's examples.

use std::collections::{BTreeMap, HashMap, HashSet};

use pathfinding::kuhn_munkres::kuhn_munkres_min;
use pathfinding::matrix::Matrix;
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::line::{Homes, Line};
use super::window::{Value, Window};
use super::*;

/// More than any solution costs.
const NEVER: i64 = 1 << 40;

fn costs(kind: MoveCost, factor: i64, distances: usize) -> Costs {
    Costs::try_new((0..distances).map(|d| (factor as f64) * kind.of(d)).collect()).unwrap()
}

/// Costs that are whole numbers.
#[derive(Debug, Clone)]
struct Prices {
    kind: MoveCost,
    factor: i64,
    suppress: Vec<i64>,
}

impl Prices {
    fn moving(&self, distance: i64) -> i64 {
        self.factor * self.kind.of(distance as usize) as i64
    }

    /// Returns the information loss of all records in the window (Equation 2).
    fn loss(&self, lines: &[Line]) -> i64 {
        let of = |(line, suppress): (&Line, &i64)| {
            let moved = line.slots.iter().flat_map(|slot| {
                slot.homes.iter().map(|(home, count)| i64::from(count) * self.moving(slot.time - home))
            });
            moved.sum::<i64>() + suppress * line.suppressed.len() as i64
        };
        lines.iter().zip(&self.suppress).map(of).sum()
    }

    /// Returns the least loss over all recycle repositions of an initial solution (Definition 2). Assignment problems for each
    /// value and each number of records that join the last snapshot are put together by dynamic programming for each level.
    fn optimum(&self, l: usize, lines: &[Line], end: i64) -> i64 {
        let tables: Vec<(usize, Vec<i64>)> =
            lines.iter().zip(&self.suppress).map(|(line, &suppress)| self.table(line, suppress, end)).collect();
        let highest = tables.iter().map(|(there, table)| there + table.len() - 1).max().unwrap_or(0);
        let mut best = NEVER;
        for level in 0..=highest {
            // Least loss by the number of records in the last snapshot.
            let mut least: HashMap<usize, i64> = HashMap::from([(0, 0)]);
            for (there, table) in &tables {
                let mut next = HashMap::new();
                for (&total, &loss) in &least {
                    for (joining, cost) in table.iter().enumerate().filter(|(joining, _)| there + joining <= level) {
                        let entry = next.entry(total + there + joining).or_insert(NEVER);
                        *entry = (*entry).min(loss + cost);
                    }
                }
                least = next;
            }
            let eligible = least.into_iter().filter(|(total, _)| *total >= l * level);
            best = best.min(eligible.map(|(_, loss)| loss).min().unwrap_or(NEVER));
        }
        best
    }

    /// Returns the records of a value in the last snapshot, and its least loss. The loss is that if so many join them.
    fn table(&self, line: &Line, suppress: i64, end: i64) -> (usize, Vec<i64>) {
        // Original time, where it is, whether it is published.
        let mut records: Vec<(i64, i64, bool)> = Vec::new();
        let mut places: Vec<i64> = Vec::new();
        for slot in &line.slots {
            for (home, count) in slot.homes.iter() {
                records.extend((0..count).map(|_| (home, slot.time, true)));
                places.extend((0..count).map(|_| slot.time));
            }
        }
        let there = places.iter().filter(|&&time| time == end).count();
        for (home, count) in line.suppressed.iter() {
            records.extend((0..count).map(|_| (home, home, false)));
        }
        let table = (0..=line.suppressed.len()).map(|joining| {
            let cost = |&(home, at, published): &(i64, i64, bool), place: Option<i64>| match place {
                Some(time) if time >= at => self.moving(time - home),
                None if !published => suppress,
                _ => NEVER,
            };
            let mut all: Vec<Option<i64>> = places.iter().copied().map(Some).collect();
            all.extend((0..joining).map(|_| Some(end)));
            all.resize(records.len(), None);
            let rows: Vec<Vec<i64>> =
                records.iter().map(|record| all.iter().map(|&place| cost(record, place)).collect()).collect();
            match rows.is_empty() {
                true => 0,
                false => kuhn_munkres_min(&Matrix::from_rows(rows).unwrap()).0,
            }
        });
        (there, table.collect())
    }
}

/// Returns the initial solution as the paper words it.
fn initial(l: usize, counts: &[(Value, u32)]) -> Vec<u32> {
    let mut kept: Vec<u32> = counts.iter().map(|&(_, count)| count).collect();
    while let Some(most) = kept.iter().copied().max().filter(|&most| most > 0)
        && most as usize * l > kept.iter().sum::<u32>() as usize
    {
        *kept.iter_mut().find(|count| **count == most).unwrap() -= 1;
    }
    kept
}

/// Returns the level and number of records of a snapshot.
fn measure(lines: &[Line], time: i64) -> (usize, usize) {
    let sizes =
        lines.iter().map(|line| line.slots.iter().find(|slot| slot.time == time).map_or(0, |slot| slot.homes.len()));
    (sizes.clone().max().unwrap_or(0), sizes.sum())
}

#[test]
fn every_window_is_optimal() {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let (mut windows, mut relayed, mut lifted) = (0, 0, 0);
    for run in 0..900 {
        let kind = if run % 2 == 0 { MoveCost::Linear } else { MoveCost::Quadratic };
        let (width, l, values) = (rng.random_range(1..7_i64), rng.random_range(2..5), rng.random_range(2..8_usize));
        let most = rng.random_range(1..40_i64);
        let suppress = (0..values).map(|_| rng.random_range(0..=most)).collect();
        let prices = Prices { kind, factor: rng.random_range(1..4), suppress };
        let mut window = Window::new(l, costs(kind, prices.factor, width as usize));
        prices.suppress.iter().for_each(|&cost| window.add_value(cost as f64, rng.random()));
        for time in 0..14 {
            if window.first().is_some_and(|first| first <= time - width) {
                window.leave().unwrap();
            }
            let busy = rng.random_range(0..4) > 0;
            let draw = |value| {
                let most = if rng.random_bool(0.3) { 9 } else { 3 };
                (value as Value, if busy { rng.random_range(0..most) } else { 0 })
            };
            let counts: Vec<(Value, u32)> = (0..values).map(draw).filter(|(_, count)| *count > 0).collect();
            let mut start = window.lines().to_vec();
            for (&(value, count), kept) in counts.iter().zip(initial(l, &counts)) {
                start[value as usize].arrive(time, kept, count - kept);
            }
            let expected = prices.optimum(l, &start, time);
            window.arrive(time, &counts);
            assert_eq!(prices.loss(window.lines()), expected, "run {run}, time {time}");
            for earlier in time - width..time {
                let sizes = |lines: &[Line]| measure(lines, earlier);
                assert_eq!(sizes(window.lines()), sizes(&start), "an earlier snapshot has changed");
            }
            let ((level, total), (before, least)) = (measure(window.lines(), time), measure(&start, time));
            assert!(level * l <= total);
            windows += 1;
            relayed += total - least;
            lifted += level - before;
        }
    }
    assert!(windows > 12_000 && relayed > 5_000 && lifted > 500, "{windows} windows, {relayed}, {lifted}");
}

#[test]
fn figures_2_and_3() {
    // Gains: +3 of all at home at the end (time 3), -2 for r7 and +1 for r8 of the time before, -3 for r9 and r6 of the first.
    let mut window = Window::new(4, costs(MoveCost::Linear, 3, 3));
    [3.0, 3.0, 1.0, 4.0, 3.0].into_iter().enumerate().for_each(|(value, cost)| window.add_value(cost, value as u64));
    window.restore(1, Vec::new(), &[(1, 1), (4, 1)]);
    window.restore(2, Vec::new(), &[(2, 1), (3, 1)]);
    window.arrive(3, &[(0, 6), (1, 3), (2, 2), (3, 1), (4, 1)]);
    assert_eq!(measure(window.lines(), 3), (3, 12));
    let suppressed: Vec<usize> = window.lines().iter().map(|line| line.suppressed.len()).collect();
    // r1, r5, r7 and r8 are published now; r2 to r4, r6 and r9 are not.
    assert_eq!(suppressed, [3, 1, 0, 0, 1]);
}

#[test]
fn example_1() {
    let prices = Prices { kind: MoveCost::Quadratic, factor: 5, suppress: vec![100] };
    let mut line = Line::default();
    line.arrive(6, 2, 1);
    line.arrive(7, 2, 0);
    line.arrive(8, 1, 0);
    line.slots[2].homes.add(7, 1);
    assert_eq!(prices.loss(&[line]), 100 + 5);
}

#[test]
fn a_relay_keeps_counts_and_order_and_can_be_undone() {
    let mut line = Line::default();
    line.arrive(1, 2, 1);
    line.arrive(3, 1, 0);
    line.arrive(4, 3, 0);
    line.arrive(6, 1, 0);
    let before = line.clone();
    let costs = costs(MoveCost::Quadratic, 1, 10);
    // 1 -> 3, 3 -> 4, 4 -> 6.
    assert_eq!(line.price(6, &costs), Some(4.0 + 1.0 + 4.0));
    assert_eq!(line.relay(6), Some(1));
    let homes: Vec<Vec<(i64, u32)>> = line.slots.iter().map(|slot| slot.homes.iter().collect()).collect();
    assert_eq!(homes, [vec![(1, 2)], vec![(1, 1)], vec![(3, 1), (4, 2)], vec![(4, 1), (6, 1)]]);
    line.undo(1, 6);
    assert_eq!(line, before);
}

/// Records of a stream, by time.
type Snapshots = BTreeMap<i64, Vec<Value>>;

fn snapshots() -> impl Strategy<Value = Snapshots> {
    // Skewed values; times with gaps, some of them long.
    let value = prop_oneof![3 => Just(0_u32), 2 => 0..3_u32, 1 => 0..8_u32];
    let records =
        prop_oneof![4 => prop::collection::vec(value.clone(), 0..12), 1 => prop::collection::vec(value, 1..60)];
    let gap = prop_oneof![8 => Just(1_i64), 2 => 2..5_i64, 1 => 20..1_000_000_i64];
    prop::collection::vec((gap, records), 0..25).prop_map(|list| {
        let mut time = -3;
        let next = |(gap, records)| {
            time += gap;
            (time, records)
        };
        list.into_iter().map(next).collect()
    })
}

fn parameters() -> impl Strategy<Value = Reposition> {
    (2..6_usize, 1..9_usize, any::<bool>(), prop::option::of(0.1..30.0_f64)).prop_map(
        |(l, window, linear, suppress)| {
            let move_cost = if linear { MoveCost::Linear } else { MoveCost::Quadratic };
            let suppress_cost = suppress.map(|cost| Cost::try_new("suppress_cost", cost).unwrap());
            Reposition { move_cost, suppress_cost, ..Reposition::try_new(l, window).unwrap() }
        },
    )
}

/// Original time, value and published time of each row.
type Rows = BTreeMap<u64, (i64, Value, Option<i64>)>;

/// Returns the records of a snapshot; rows are numbered through, and priorities follow from them.
fn records(values: &[Value], next: &mut u64, key: u64) -> Vec<Record> {
    let record = |&value: &Value| {
        *next += 1;
        Record { value, priority: window::mix(key ^ *next), row: *next }
    };
    values.iter().map(record).collect()
}

fn new_stream(params: &Reposition, key: u64) -> Stream {
    let mut stream = Stream::try_new(params).unwrap();
    (0..8).for_each(|value| stream.add_value(None, window::mix(key ^ value)));
    stream
}

fn note(rows: &mut Rows, departed: &Departed) -> Result<()> {
    let published = departed.published.iter().map(|placed| (placed, Some(departed.time)));
    for (placed, time) in published.chain(departed.suppressed.iter().map(|placed| (placed, None))) {
        let twice = rows.insert(placed.record.row, (placed.home, placed.record.value, time));
        assert!(twice.is_none(), "a row left twice");
    }
    Ok(())
}

/// Checks all promises of a published stream, from the rows alone.
fn promised(params: &Reposition, rows: &Rows) {
    let mut snapshots: BTreeMap<i64, HashMap<Value, usize>> = BTreeMap::new();
    let mut order: BTreeMap<Value, Vec<(i64, i64)>> = BTreeMap::new();
    for &(home, value, time) in rows.values() {
        let Some(time) = time else { continue };
        assert!(home <= time && time < home + params.window as i64);
        *snapshots.entry(time).or_default().entry(value).or_default() += 1;
        order.entry(value).or_default().push((time, home));
    }
    for snapshot in snapshots.values() {
        let (total, level) = (snapshot.values().sum::<usize>(), snapshot.values().copied().max().unwrap());
        assert!(level * params.l <= total);
    }
    for mut records in order.into_values() {
        records.sort_unstable();
        assert!(records.is_sorted_by_key(|&(_, home)| home));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn streams_keep_their_promises(params in parameters(), snapshots in snapshots(), key: u64) {
        let mut stream = new_stream(&params, key);
        let (mut rows, mut next) = (Rows::new(), 0);
        for (&time, values) in &snapshots {
            let before = rows.len();
            stream.arrive(time, records(values, &mut next, key), &mut |departed| {
                // On time: neither earlier nor later than the window says.
                assert!(departed.time <= time - params.window as i64);
                note(&mut rows, &departed)
            }).unwrap();
            let late = snapshots.range(..=time - params.window as i64).map(|(_, values)| values.len()).sum::<usize>();
            prop_assert!(rows.len() <= late && rows.len() >= before);
        }
        stream.finish(&mut |departed| note(&mut rows, &departed)).unwrap();
        let all: usize = snapshots.values().map(Vec::len).sum();
        prop_assert_eq!(rows.len(), all);
        promised(&params, &rows);
        let totals = stream.totals();
        prop_assert_eq!(totals.arrived, all);
        prop_assert_eq!(totals.published, rows.values().filter(|row| row.2.is_some()).count());
        prop_assert_eq!(totals.moved, rows.values().filter(|row| row.2.is_some_and(|time| time > row.0)).count());
        // Rows are what they were.
        let mut number = 0;
        for (&time, values) in &snapshots {
            for &value in values {
                number += 1;
                prop_assert_eq!((rows[&number].0, rows[&number].1), (time, value));
            }
        }
    }

    /// Cut anywhere, held back, continued later: the same counts as in one go.
    #[test]
    fn streams_can_be_continued(params in parameters(), snapshots in snapshots(), key: u64, every in 1..5_usize) {
        let figures = |rows: &Rows| {
            let mut figures: BTreeMap<(Value, i64, Option<i64>), usize> = BTreeMap::new();
            rows.values().for_each(|&(home, value, time)| *figures.entry((value, home, time)).or_default() += 1);
            figures
        };
        let (mut whole, mut next) = (Rows::new(), 0);
        let mut stream = new_stream(&params, key);
        for (&time, values) in &snapshots {
            stream.arrive(time, records(values, &mut next, key), &mut |departed| note(&mut whole, &departed)).unwrap();
        }
        let mut rest = stream.pending().unwrap();
        let (mut parts, mut next, mut held) = (Rows::new(), 0, Vec::new());
        let all: Vec<_> = snapshots.iter().collect();
        let mut newest = None;
        for part in all.chunks(every) {
            let mut stream = new_stream(&params, key);
            if let Some(newest) = newest {
                stream.restore(&held, newest).unwrap();
            }
            for &(&time, values) in part {
                let records = records(values, &mut next, key);
                stream.arrive(time, records, &mut |departed| note(&mut parts, &departed)).unwrap();
            }
            newest = stream.newest();
            held = stream.pending().unwrap();
        }
        prop_assert_eq!(figures(&whole), figures(&parts));
        let order = |pending: &Pending| (pending.placed.home, pending.placed.record.value, pending.place);
        let mut left: Vec<_> = held.iter().map(order).collect();
        rest.sort_by_key(order);
        left.sort_unstable();
        prop_assert_eq!(rest.iter().map(order).collect::<Vec<_>>(), left);
    }

    /// Later records change no count of a day, not even within the window. The number of records of each value that is
    /// published at a time follows from the records up to then, whether later ones come or the stream ends.
    #[test]
    fn later_records_change_no_count_of_a_day(params in parameters(), snapshots in snapshots(), key: u64) {
        let published = |last: usize| {
            let (mut rows, mut next) = (Rows::new(), 0);
            let mut stream = new_stream(&params, key);
            for (&time, values) in snapshots.iter().take(last) {
                stream.arrive(time, records(values, &mut next, key), &mut |departed| note(&mut rows, &departed)).unwrap();
            }
            stream.finish(&mut |departed| note(&mut rows, &departed)).unwrap();
            let mut counts: BTreeMap<(i64, Value), usize> = BTreeMap::new();
            rows.values().filter_map(|row| Some((row.2?, row.1))).for_each(|day| *counts.entry(day).or_default() += 1);
            counts
        };
        let whole = published(snapshots.len());
        for (last, (&newest, _)) in (1..).zip(&snapshots) {
            let until: BTreeMap<_, _> = whole.range(..=(newest, Value::MAX)).map(|(day, count)| (*day, *count)).collect();
            prop_assert_eq!(published(last), until, "up to {}", newest);
        }
    }

    /// Neither the order of arrival nor the numbers of values decide anything.
    #[test]
    fn only_the_seed_decides(params in parameters(), snapshots in snapshots(), key: u64, order: u64) {
        let run = |numbers: &[Value], rng: &mut ChaCha20Rng| {
            let mut stream = Stream::try_new(&params).unwrap();
            let mut ties: Vec<(Value, u64)> = (0..8).map(|value| (numbers[value], window::mix(key ^ value as u64))).collect();
            ties.sort_unstable();
            ties.into_iter().for_each(|(_, tie)| stream.add_value(None, tie));
            let (mut rows, mut next) = (Vec::new(), 0);
            for (&time, values) in &snapshots {
                let mut records = records(values, &mut next, key);
                records.iter_mut().for_each(|record| record.value = numbers[record.value as usize]);
                records.shuffle(rng);
                let mut seen = |departed: Departed| {
                    rows.extend(departed.published.iter().map(|placed| (departed.time, placed.record.row)));
                    Ok(())
                };
                stream.arrive(time, records, &mut seen).unwrap();
            }
            rows
        };
        let mut rng = ChaCha20Rng::seed_from_u64(order);
        let mut numbers: Vec<Value> = (0..8).collect();
        let expected = run(&numbers, &mut rng);
        numbers.shuffle(&mut rng);
        prop_assert_eq!(run(&numbers, &mut rng), expected);
    }
}

/// Lots decide which records of a value and a time move, also among equal rows.
#[test]
fn who_moves_is_by_lot() {
    let params = Reposition::try_new(2, 2).unwrap();
    for twins in [false, true] {
        let mut moved = [0_usize; 6];
        for key in 0..6_000_u64 {
            let mut stream = new_stream(&params, key);
            let priority = |row: u64| window::mix(key ^ if twins { 7 } else { row << 20 });
            let record = |value, row| Record { value, priority: priority(row), row };
            let mut seen = |departed: Departed| {
                let late = departed.published.iter().filter(|placed| placed.home < departed.time);
                late.for_each(|placed| moved[placed.record.row as usize] += 1);
                Ok(())
            };
            let first = (0..6).map(|row| record(0, row)).chain((6..9).map(|row| record(1, row)));
            stream.arrive(0, first.collect(), &mut seen).unwrap();
            stream.arrive(1, (9..12).map(|row| record(2, row)).collect(), &mut seen).unwrap();
            stream.finish(&mut seen).unwrap();
        }
        assert_eq!(moved.iter().sum::<usize>(), 3 * 6_000);
        if !twins {
            // Standard deviation 39.
            assert!(moved.iter().all(|&count| count.abs_diff(3_000) < 200), "{moved:?}");
        }
    }
}

#[test]
fn empty_snapshots_take_records_in() {
    // Two of each of two values, but only one of each may be published with l = 2 beside a third.
    let params = Reposition::try_new(2, 5).unwrap();
    let mut stream = new_stream(&params, 1);
    let mut rows = Rows::new();
    let mut next = 0;
    stream.arrive(0, records(&[0, 0, 0], &mut next, 1), &mut |departed| note(&mut rows, &departed)).unwrap();
    stream.arrive(1, records(&[1, 1], &mut next, 1), &mut |departed| note(&mut rows, &departed)).unwrap();
    stream.arrive(9, records(&[], &mut next, 1), &mut |departed| note(&mut rows, &departed)).unwrap();
    let published: HashSet<u64> = rows.iter().filter(|(_, row)| row.2.is_some()).map(|(&row, _)| row).collect();
    assert_eq!((rows.len(), published.len()), (5, 4));
    promised(&params, &rows);
}

#[test]
fn parameters_are_checked() {
    assert!(Reposition::try_new(1, 7).is_err());
    assert!(Reposition::try_new(4, 0).is_err());
    assert!(Reposition::try_new(4, LONGEST + 1).is_err());
    assert!(Costs::try_new(vec![1.0, 2.0]).is_err());
    assert!(Costs::try_new(vec![0.0, 1.0, 1.0]).is_err());
    assert!(Costs::try_new(vec![0.0, 2.0, 3.0]).is_err(), "concave");
    assert!(Costs::try_new(vec![0.0, 2.0, 4.0]).is_ok());
    assert!(Cost::try_new("suppress_cost", f64::NAN).is_err());
    let params = Reposition { move_cost: MoveCost::Quadratic, ..Reposition::try_new(4, 7).unwrap() };
    let text = serde_json::to_string(&params).unwrap();
    assert_eq!(text, r#"{"l":4,"window":7,"move_cost":"quadratic","move_factor":1.0}"#);
    assert_eq!(serde_json::from_str::<Reposition>(&text).unwrap(), params);
}

#[test]
fn what_was_held_back_elsewhere_is_refused() {
    let params = Reposition::try_new(2, 3).unwrap();
    let pending = |home, place| {
        let record = Record { value: 0, priority: 1, row: 1 };
        [Pending { placed: Placed { record, home }, place }]
    };
    for (home, place) in [(5, Some(4)), (0, Some(5)), (2, Some(2)), (11, None)] {
        assert!(new_stream(&params, 1).restore(&pending(home, place), 5).is_err(), "{home} {place:?}");
    }
    assert!(new_stream(&params, 1).restore(&pending(4, Some(5)), 5).is_ok());
    let homes = Homes::of(3, 2);
    assert_eq!(homes.len(), 2);
}
