//! People who leave and return, in publications: whoever is there keeps all worlds.

use pathfinding::kuhn_munkres::kuhn_munkres;
use rand::seq::SliceRandom;

use super::*;
use crate::choices::alone;
use crate::state::ledger_schema;

/// A publication: what everybody has, and what the ledger remembers.
struct Series {
    everybody: People,
    method: AnyMethod,
    ledger: Vec<RecordBatch>,
    /// Person who alone has a value of the first other column, if any.
    only: Option<usize>,
}

impl Series {
    fn new(everybody: People, method: AnyMethod) -> Self {
        Self { everybody, method, ledger: Vec::new(), only: None }
    }

    /// Publishes these columns of who is there; the others are NULL for everybody, as in an INSERT that does not name them.
    fn publish(&mut self, there: &[bool], columns: &Columns, seed: u64) -> Result<RecordBatch> {
        let (batch, roles) = self.everybody.batch(&self.everybody.all());
        let named = |name: &str| {
            let place = || name[1..].parse::<usize>().unwrap();
            match &name[..1] {
                "q" => columns.quasi.contains(&place()),
                "o" => columns.other.contains(&place()),
                "s" => columns.sensitive,
                _ => true,
            }
        };
        let schema = batch.schema();
        let arrays = schema.fields().iter().zip(batch.columns()).map(|(field, array)| match named(field.name()) {
            true if field.name() == "o0" && self.only.is_some() => {
                let has = |person: usize| Some(person) == self.only;
                let values = array.as_primitive::<Int32Type>().iter().enumerate();
                Arc::new(values.map(|(person, value)| value.filter(|_| has(person))).collect::<Int32Array>())
                    as ArrayRef
            }
            true => ArrayRef::clone(array),
            false => datafusion::arrow::array::new_null_array(array.data_type(), array.len()),
        });
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays.collect()).unwrap();
        let there = datafusion::arrow::array::BooleanArray::from(there.to_vec());
        let batch = datafusion::arrow::compute::filter_record_batch(&batch, &there).unwrap();

        let layout = Layout::try_new(&batch.schema(), &roles)?;
        let kind = self.method.state().unwrap();
        let mut builder = SnapshotBuilder::try_new(layout.clone(), Some(kind))?;
        builder.microdata.leave_out_empty();
        let left_out: Vec<String> =
            schema.fields().iter().map(|field| field.name().clone()).filter(|name| !named(name)).collect();
        builder.microdata.leave_out(&left_out);
        builder.microdata.append(&batch)?;
        for entries in &self.ledger {
            builder.append_previous(entries)?;
        }
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (microdata, state) = builder.finish(rng.random())?;
        let release = self.method.release(microdata, &state, &Monitor::default(), &mut rng)?;
        let description = Description::new("test", "{}".into(), "x".into(), None);
        let (view, form) = (View::Public, self.method.form());
        let shape = Shape { view, form, signatures: false, labels: false, rings: false, nodes: false, counted: true };
        let whole = super::schema(&layout, shape, &description);
        let fields = whole.fields().iter().filter(|field| field.name().len() > 2 || named(field.name()));
        let public = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        let published = Published::new(release, public, RowOrder::Random, &mut rng);
        let members = kind.members(&published, &state)?;
        let number = self.ledger.len() as u64 + 1;
        let entries = kind.entries(&published, &members, number, &ledger_schema(Some(kind), &layout)?)?;
        self.ledger.push(entries);
        published.batch(0, published.len())
    }

    fn partners(&self) -> BTreeMap<i64, Vec<i64>> {
        let entries = self.ledger.iter().flat_map(partners);
        entries.filter(|(_, partners)| !partners.is_empty()).collect()
    }

    /// Checks that all present people can have their own rows in a world. Rows have the values that they carry there, and are around them.
    fn is_consistent(
        &self,
        release: &RecordBatch,
        there: &[bool],
        columns: &Columns,
        carried: impl Fn(i64) -> i64,
    ) -> bool {
        let rows = released(release, columns);
        let world = world(&self.everybody, columns, carried);
        let d = columns.quasi.len();
        let people: Vec<usize> = (0..there.len()).filter(|&person| there[person]).collect();
        let fits = |(person, row): (usize, usize)| {
            let person = people[person];
            let inside = world.quasi[person * d..][..d].iter().zip(&rows.boxes[row * d..][..d]);
            i64::from(
                world.values[person] == rows.values[row] && inside.into_iter().all(|(q, [lo, hi])| lo <= q && q <= hi),
            )
        };
        let matched = kuhn_munkres(&pathfinding::matrix::Matrix::from_fn(people.len(), rows.values.len(), fits)).0;
        matched as usize == people.len()
    }
}

/// Returns the number of rows and of counterfeits that all rows say.
fn counted(release: &RecordBatch) -> [i32; 2] {
    ["group_size", "counterfeits"].map(|name| {
        let column = release.column_by_name(name).unwrap().as_primitive::<Int32Type>();
        assert!(column.values().iter().all(|&value| value == column.value(0)));
        column.value(0)
    })
}

fn publication_of(l: usize, p: usize) -> AnyMethod {
    AnyMethod::Sequential(Sequential::new(l).with_p(p))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Releases of any columns, of people who come, leave and return: each is consistent with every world, and has as many counterfeits as
    /// people of whose ring somebody is there are not.
    #[test]
    fn whoever_is_there_keeps_all_worlds(
        everybody in people(4..40), chosen in prop::collection::vec((columns(), prop::collection::vec(0_u8..4, 40)), 1..5),
        l in 2_usize..5, p in 1_usize..40, seed in any::<u64>(),
    ) {
        prop_assume!(diversity(&everybody) >= l);
        let n = everybody.len();
        let all = vec![true; n];
        // A quasi-identifier without any value is not in the release, and a snapshot without rows is refused.
        let known = |people: &People, there: &[bool], columns: &Columns| {
            columns.quasi.iter().all(|&j| (0..n).any(|person| there[person] && people.quasi[j][person].is_some()))
        };
        prop_assume!(known(&everybody, &all, &everybody.all()));
        let mut series = Series::new(everybody, publication_of(l, p));
        let columns = series.everybody.all();
        let first = series.publish(&all, &columns, seed).unwrap();
        prop_assert_eq!(counted(&first), [n as i32, 0]);
        let partners = series.partners();
        prop_assert_eq!(partners.len(), n);
        let ring_of = rings(&partners);
        for (columns, away) in chosen {
            let there: Vec<bool> = away[..n].iter().map(|&away| away > 0).collect();
            let present = there.iter().filter(|there| **there).count();
            if present == 0 || !known(&series.everybody, &there, &columns) {
                continue;
            }
            let release = series.publish(&there, &columns, seed ^ 1).unwrap();
            let travels = columns.sensitive || !columns.other.is_empty();
            let kept = |person: &usize| !there[*person] && (0..n).any(|other| there[other] && ring_of[other] == ring_of[*person]);
            let ghosts = if travels { (0..n).filter(kept).count() } else { 0 };
            prop_assert_eq!(release.num_rows(), present + ghosts);
            prop_assert_eq!(counted(&release), [(present + ghosts) as i32, ghosts as i32]);
            for world in 0..l {
                let carried = |id: i64| if world == 0 { id } else { partners[&id][world - 1] };
                prop_assert!(series.is_consistent(&release, &there, &columns, carried), "world {}", world);
            }
        }
        // Nothing was forgotten, and nothing is remembered twice.
        prop_assert_eq!(series.ledger.iter().map(RecordBatch::num_rows).sum::<usize>(), n);
        let last = series.publish(&all, &columns, seed ^ 2).unwrap();
        prop_assert_eq!(counted(&last), [n as i32, 0]);
    }
}

/// Returns the least person who carries what somebody of the ring has, and so on.
fn rings(partners: &BTreeMap<i64, Vec<i64>>) -> Vec<i64> {
    let mut least: Vec<i64> = partners.keys().copied().collect();
    loop {
        let before = least.clone();
        for (&id, of_person) in partners {
            let all = of_person.iter().chain([&id]);
            let smallest = all.clone().map(|&id| least[id as usize]).min().unwrap();
            all.for_each(|&id| least[id as usize] = smallest);
        }
        if least == before {
            return least;
        }
    }
}

/// A column that nobody had when they left has no value for their rows.
#[test]
fn columns_of_people_who_have_left() {
    let everybody = People {
        first: 0,
        quasi: vec![(0..12).map(Some).collect()],
        sensitive: (0..12).map(|i| i % 4).collect(),
        other: vec![(0..12).collect()],
    };
    let mut series = Series::new(everybody, publication_of(3, 100));
    let without = Columns { quasi: vec![0], sensitive: true, other: Vec::new() };
    series.publish(&[true; 12], &without, 1).unwrap();
    let mut there = [true; 12];
    there[3] = false;
    series.publish(&there, &without, 2).unwrap();
    let refused = series.publish(&there, &series.everybody.all(), 3).unwrap_err().to_string();
    assert!(refused.contains("column o0 was not published while 1 people were there who have left"), "{refused}");
    // It is when they are back, and then it stays.
    let all = series.everybody.all();
    series.publish(&[true; 12], &all, 4).unwrap();
    let release = series.publish(&there, &all, 5).unwrap();
    assert_eq!(counted(&release), [12, 1]);
    let values = release.column_by_name("o0").unwrap().as_primitive::<Int32Type>().values().to_vec();
    assert_eq!(values.iter().collect::<BTreeSet<_>>().len(), 12);
    // Who returns with another value is not the one who left.
    series.everybody.sensitive[3] = 0;
    let refused = series.publish(&[true; 12], &all, 6).unwrap_err().to_string();
    assert!(refused.contains("1 people have other values"), "{refused}");
}

/// The publisher says whether a column is published, not present people's values. One of them carries, in some
/// world, the value of a person who has left.
#[test]
fn a_column_that_only_who_has_left_had() {
    let everybody = People {
        first: 0,
        quasi: vec![(0..12).map(Some).collect()],
        sensitive: (0..12).map(|i| i % 4).collect(),
        other: vec![vec![7; 12]],
    };
    for columns in [vec![0], vec![]] {
        let mut series = Series::new(everybody.clone(), publication_of(3, 100));
        series.only = Some(3);
        series.publish(&[true; 12], &series.everybody.all(), 1).unwrap();
        let mut there = [true; 12];
        there[3] = false;
        let named = Columns { quasi: vec![0], sensitive: columns.is_empty(), other: vec![0] };
        let release = series.publish(&there, &named, 2).unwrap();
        assert_eq!(counted(&release), [12, 1]);
        assert_eq!(release.column_by_name("o0").unwrap().null_count(), 11);
    }
}

/// Returns how often a reader names the value of the first present person. The reader has seen the same releases of
/// many other tables, with the values. Everybody has a place of their own, and all ways to give out the values are
/// equally likely. Without `ghosts`, the release that follows shows the values of who is there alone.
fn success(n: usize, l: usize, there: &[bool], ghosts: bool, draws: usize) -> f64 {
    let method = publication_of(l, 100);
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let mut table: Vec<i32> = (0..n as i32).map(|i| i % l as i32).collect();
    let first = there.iter().position(|there| *there).unwrap();
    let mut seen = || {
        table.shuffle(&mut rng);
        let everybody = People {
            first: 0,
            quasi: vec![(0..n as i32).map(Some).collect()],
            sensitive: table.clone(),
            other: Vec::new(),
        };
        let mut series = Series::new(everybody, method.clone());
        let columns = series.everybody.all();
        let releases = [vec![true; n], there.to_vec()].map(|there| {
            let release = series.publish(&there, &columns, rng.random()).unwrap();
            let rows = released(&release, &columns);
            let mut rows: Vec<([i64; 2], u64)> = rows.boxes.into_iter().zip(rows.values).collect();
            if !ghosts {
                let of_who_is_there = table.iter().zip(&there).filter(|(_, there)| **there);
                rows = of_who_is_there.map(|(&value, _)| ([0; 2], value as u64)).collect();
            }
            rows.sort_unstable();
            rows
        });
        (releases, table[first])
    };
    let mut learned: BTreeMap<_, BTreeMap<i32, usize>> = BTreeMap::new();
    for _ in 0..draws {
        let (releases, value) = seen();
        *learned.entry(releases).or_default().entry(value).or_default() += 1;
    }
    let mut right = 0.0;
    for _ in 0..draws {
        let (releases, value) = seen();
        let guess = learned.get(&releases).and_then(|values| values.iter().max_by_key(|(_, times)| **times));
        right += match guess {
            Some((guess, _)) => f64::from(u8::from(*guess == value)),
            None => 1.0 / l as f64,
        };
    }
    right / draws as f64
}

/// Everybody present has each of `l` values with the same chance. The reader knows who is there, the program and
/// everybody's places. Without ghosts the value that is gone is known to be nobody's.
#[test]
fn who_leaves_tells_nothing() {
    const DRAWS: usize = 4000;
    for (n, l, away) in [(3, 3, vec![2]), (4, 2, vec![3]), (6, 3, vec![1, 4])] {
        let there: Vec<bool> = (0..n).map(|person| !away.contains(&person)).collect();
        let success = |ghosts| alone(|| success(n, l, &there, ghosts, DRAWS));
        let chance = 1.0 / l as f64;
        let noise = 5.0 * (chance * (1.0 - chance) / DRAWS as f64).sqrt();
        let with = success(true);
        assert!(with < chance + noise, "{n} people, l = {l}: {with}");
        let without = success(false);
        assert!(without > chance + noise, "{n} people, l = {l}: {without}");
    }
}
