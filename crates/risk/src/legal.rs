//! Legal update instances: whether the values of a group can be what the values of an earlier group have become.
//!
//! F. Li and S. Zhou 2008, Definitions 13 to 15. The *update set signature* (USS) of a group is the multiset of the candidate
//! update sets of its values.

use super::Updates;

/// Returns true if `values` is a legal update instance of the USS of `before`. There are as many values as sets, each value in the set at its
/// place. Both are in the order of labels, which everybody keeps for ever. That holds against a reader who combines the members of groups.
pub(super) fn is_legal(updates: &Updates, before: &[u32], values: &[u32]) -> bool {
    before.len() == values.len() && before.iter().zip(values).all(|(&from, &to)| updates.follows(from, to))
}

#[cfg(test)]
mod tests {
    use super::super::Update;
    use super::*;

    /// Returns true if a one-to-one map of values onto sets has values in sets. Each value must be in its set. A reader
    /// who combines the members of groups can break it where the maps of different people contradict each other.
    fn is_strict(updates: &Updates, before: &[u32], values: &[u32]) -> bool {
        // Kuhn's augmenting paths; groups are small. `holder[i]` is the value that the set `i` was given.
        let mut holder = vec![None; before.len()];
        before.len() == values.len()
            && (0..values.len()).all(|value| {
                let mut seen = vec![false; before.len()];
                place(value, updates, (before, values), &mut holder, &mut seen)
            })
    }

    /// Returns true if each value is in some set, and some value in each set: the paper's Definition 14, which a reader who combines the members of a group
    /// can break.
    fn is_covering(updates: &Updates, before: &[u32], values: &[u32]) -> bool {
        before.len() == values.len()
            && before.iter().all(|&from| values.iter().any(|&to| updates.follows(from, to)))
            && values.iter().all(|&to| before.iter().any(|&from| updates.follows(from, to)))
    }

    /// Finds a set for a value, moving others if need be.
    fn place(
        value: usize,
        updates: &Updates,
        (before, values): (&[u32], &[u32]),
        holder: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        for set in 0..before.len() {
            if seen[set] || !updates.follows(before[set], values[value]) {
                continue;
            }
            seen[set] = true;
            if holder[set].is_none_or(|other| place(other, updates, (before, values), holder, seen)) {
                holder[set] = Some(value);
                return true;
            }
        }
        false
    }

    /// Returns the paper's diseases: dyspepsia, gastritis; flu, pneumonia, lung cancer; glaucoma, cataract.
    fn diseases() -> Updates {
        let classes: [&[u32]; 3] = [&[0, 1], &[2, 3, 4], &[5, 6]];
        let pairs = classes.iter().flat_map(|class| class.iter().flat_map(|&a| class.iter().map(move |&b| (a, b))));
        let rows: Vec<Update> = pairs.map(|(a, b)| Update::possible(a, b)).collect();
        let updates = Updates::try_new(7, &rows).unwrap();
        assert!(updates.intransitive().is_empty());
        updates
    }

    /// Tables IV and V: groups of the second release with, for each real member, the group of the first that had it.
    #[test]
    fn table_v_is_legal_and_table_iv_is_not() {
        let updates = diseases();
        let (ken_julia, tom_harry, lily_ben): (&[u32], &[u32], &[u32]) = (&[0, 3], &[3, 1], &[5, 2]);
        let table_v: [(&[u32], &[&[u32]]); 4] = [
            (&[0, 3], &[ken_julia, tom_harry]),
            (&[4, 0], &[ken_julia, tom_harry]),
            (&[5, 3], &[lily_ben]),
            (&[3, 6], &[lily_ben]),
        ];
        for is_legal in [is_strict, is_covering] {
            for (values, before) in table_v {
                assert!(before.iter().all(|before| is_legal(&updates, before, values)));
            }
            // {Ken, Lily}, {Julia, Tom}, {Harry, Ben}.
            let table_iv: [(&[u32], &[u32]); 4] =
                [(&[0, 5], ken_julia), (&[4, 3], tom_harry), (&[0, 3], lily_ben), (&[0, 5], lily_ben)];
            assert!(table_iv.iter().all(|(values, before)| !is_legal(&updates, before, values)));
        }
    }

    /// The counterexample to Definition 14: each value is in some set and each set has some value, but no one-to-one map.
    #[test]
    fn the_strict_form_asks_for_more() {
        let all = |from: u32| (0..4).map(move |to| Update::possible(from, to));
        let rows: Vec<Update> = [Update::possible(2, 2), Update::possible(2, 3), Update::possible(3, 3)]
            .into_iter()
            .chain(all(0))
            .chain(all(1))
            .collect();
        let updates = Updates::try_new(4, &rows).unwrap();
        let (before, values) = ([2, 3, 1], [3, 0, 1]);
        assert!(is_covering(&updates, &before, &values));
        assert!(!is_strict(&updates, &before, &values));
        assert!(is_strict(&updates, &before, &[3, 2, 0]), "values need not come in order");
        assert!(!is_legal(&updates, &before, &[3, 2, 0]), "but for labels they do");
        assert!(is_legal(&updates, &before, &[2, 3, 0]));
        assert!(!is_legal(&updates, &before, &[2, 3]));
        assert!(!is_covering(&updates, &before, &[3, 2]));
    }
}
