//! The paper's examples.

use super::*;
use crate::rings::Rings;

/// Makes Example 4.2 with its one bucket in the paper's order: a row for everybody, who all carry the next one's value.
pub(super) fn example() -> (People, RecordBatch) {
    let some = |codes: [i32; 5]| codes.map(Some).to_vec();
    let people = People {
        first: 0,
        quasi: vec![some([0, 0, 1, 1, 2]), some([0, 1, 1, 0, 2])],
        sensitive: vec![1, 2, 3, 2, 3],
        other: Vec::new(),
    };
    let made = run(&worlds_of(2), &people, &people.all(), None, false, 1).unwrap();
    let worlds = resealed(&made, &next_ones(&made));
    (people, worlds)
}

/// Returns partners of five people, each of whom carries what the next one has.
fn next_ones(made: &RecordBatch) -> datafusion::arrow::array::ListArray {
    let ids = made.column(0).as_primitive::<Int64Type>();
    let lists = ids.values().iter().map(|id| Some(vec![Some((id + 1) % 5)]));
    let item = Field::new_list_field(datafusion::arrow::datatypes::DataType::Int64, true);
    let lists = datafusion::arrow::array::ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    let (_, offsets, values, nulls) = lists.into_parts();
    datafusion::arrow::array::ListArray::new(Arc::new(item), offsets, values, nulls)
}

#[test]
fn example_4_2() {
    let (people, worlds) = example();
    for seed in 0..20 {
        let rows = |j: usize| {
            let columns = Columns { quasi: vec![j], sensitive: true, other: Vec::new() };
            let release = run(&release_of(100, Loss::Lm), &people, &columns, Some(&worlds), true, seed).unwrap();
            let rows = released(&release, &columns);
            let mut rows: Vec<_> = rows.boxes.iter().copied().zip(rows.values.iter().map(|value| value - 1)).collect();
            rows.sort_unstable();
            rows
        };
        // (rt, 1), (r, 2), (s, 3), (s, 2), (rt, 3), where rt is all values; and (xz, 1), (y, 2), (y, 3), (x, 2), (xz, 3).
        assert_eq!(rows(0), [([0, 0], 2), ([0, 2], 1), ([0, 2], 3), ([1, 1], 2), ([1, 1], 3)]);
        assert_eq!(rows(1), [([0, 0], 2), ([0, 2], 1), ([0, 2], 3), ([1, 1], 2), ([1, 1], 3)]);
    }
}

/// The same rows the other way: every row covers the one before it.
#[test]
fn example_4_2_at_once() {
    let (people, _) = example();
    let (batch, roles) = people.batch(&people.all());
    let mut builder = MicrodataBuilder::try_new(Layout::try_new(&batch.schema(), &roles).unwrap()).unwrap();
    builder.append(&batch).unwrap();
    let microdata = builder.finish([1, 2]).unwrap();
    let arrival = &microdata.people.as_ref().unwrap().arrival;
    let row = |place: u32| arrival.iter().position(|&arrived| arrived == place).unwrap() as u32;
    let rings = Rings { people: (0..5).map(row).collect(), ends: vec![5], shifts: vec![1], width: 1 };
    let boxes = baseline::cover(&microdata, &rings);
    assert_eq!(boxes.iter().filter(|[lo, hi]| lo != hi).count(), 7);
}

/// Finds everybody's possible sensitive values, for a reader of all releases and quasi-identifiers.
fn possible(people: &People, releases: &[(Columns, ReleasedRows)]) -> Vec<BTreeSet<i32>> {
    let mut possible = vec![BTreeSet::new(); people.len()];
    let mut dealt: Vec<i64> = Vec::new();
    deal(people, releases, &mut dealt, &mut possible);
    possible
}

fn deal(people: &People, releases: &[(Columns, ReleasedRows)], dealt: &mut Vec<i64>, possible: &mut [BTreeSet<i32>]) {
    if dealt.len() == people.len() {
        let fits = |(columns, rows): &(Columns, ReleasedRows)| {
            world(people, columns, |id| dealt[id as usize]).is_consistent(rows, columns.quasi.len())
        };
        if releases.iter().all(fits) {
            dealt.iter().zip(possible).for_each(|(&id, values)| {
                values.insert(people.sensitive[id as usize]);
            });
        }
        return;
    }
    for id in people.ids() {
        if !dealt.contains(&id) {
            dealt.push(id);
            deal(people, releases, dealt, possible);
            dealt.pop();
        }
    }
}

/// Releases disclose people together, though each of them is diverse; releases that know of worlds do not.
fn together(people: &People, columns: &[Columns; 2], disclosed: usize) {
    let plain = |columns: &Columns| {
        let world = world(people, columns, |id| id);
        (
            columns.clone(),
            ReleasedRows { boxes: world.quasi.iter().map(|&code| [code, code]).collect(), values: world.values },
        )
    };
    let plain: Vec<_> = columns.iter().map(plain).collect();
    assert_eq!(possible(people, &plain).iter().filter(|values| values.len() == 1).count(), disclosed);
    for seed in 0..20 {
        let worlds = run(&worlds_of(2), people, &people.all(), None, false, seed).unwrap();
        let release = |columns: &Columns| {
            let release = run(&release_of(100, Loss::Lm), people, columns, Some(&worlds), false, seed).unwrap();
            (columns.clone(), released(&release, columns))
        };
        let releases: Vec<_> = columns.iter().map(release).collect();
        assert!(possible(people, &releases).iter().all(|values| values.len() >= 2));
    }
}

#[test]
fn example_1_1() {
    let people = People {
        first: 0,
        quasi: vec![[20, 20, 30, 30].map(Some).to_vec(), [0, 1, 0, 1].map(Some).to_vec()],
        sensitive: vec![0, 1, 2, 3],
        other: Vec::new(),
    };
    let of = |j: usize| Columns { quasi: vec![j], sensitive: true, other: Vec::new() };
    // Alice is 20 and female: measles.
    together(&people, &[of(0), of(1)], 4);
}

#[test]
fn example_3_2() {
    let people = People {
        first: 0,
        quasi: vec![[0, 1, 0].map(Some).to_vec(), [0, 0, 1].map(Some).to_vec()],
        sensitive: vec![1, 2, 2],
        other: Vec::new(),
    };
    // Two of three have one value: 1-diverse, and so no worlds for l = 2; releases as they are disclose everybody.
    let of = |j: usize| Columns { quasi: vec![j], sensitive: true, other: Vec::new() };
    let plain = |columns: Columns| {
        let world = world(&people, &columns, |id| id);
        let boxes = world.quasi.iter().map(|&code| [code, code]).collect();
        (columns, ReleasedRows { boxes, values: world.values })
    };
    let releases = [plain(of(1)), plain(of(0))];
    assert_eq!(possible(&people, &releases)[0].len(), 1);
    let refused = run(&worlds_of(2), &people, &people.all(), None, false, 1).unwrap_err();
    assert!(refused.to_string().contains("not 2-eligible"), "{refused}");
}
