//! Fits shares of values to margins that are known: iterative proportional fitting (raking), where all that is known of people besides is
//! the interval that each lies in.

/// People whose values lie between two of the values, both included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub first: usize,
    pub last: usize,
    /// People at each of the two.
    pub at_each_end: f64,
    /// The others, who are spread over the span.
    pub inside: f64,
}

/// Rounds of fitting. After ten the margins of real data were met to a thousandth of the people.
const ROUNDS: usize = 50;
/// Tolerance for margins to count as met: sum of differences, by the people.
const MET: f64 = 1e-6;

/// Returns the weights of values by which the people of all spans meet the margins. At each value there are as many
/// as `margins` say: in shares or numbers. Begins with the weights `from`. Values that the margins do not have get
/// none; where margins and spans contradict each other, what comes nearest.
pub(super) fn rake(spans: &[Span], margins: &[f64], from: &[f64]) -> Vec<f64> {
    let people: f64 = spans.iter().map(|span| 2.0 * span.at_each_end + span.inside).sum();
    let whole: f64 = margins.iter().sum();
    let mut wanted: Vec<f64> = margins.iter().map(|share| people * share / whole).collect();
    let mut free = Vec::with_capacity(spans.len());
    for span in spans {
        wanted[span.first] -= span.at_each_end;
        wanted[span.last] -= span.at_each_end;
        match span.first == span.last {
            true => wanted[span.first] -= span.inside,
            false => free.push(span),
        }
    }
    // More people are known to be there than the margins say.
    wanted.iter_mut().for_each(|wanted| *wanted = wanted.max(0.0));
    let mut weights: Vec<f64> =
        from.iter().zip(margins).map(|(&from, &margin)| if margin > 0.0 { from } else { 0.0 }).collect();
    for _ in 0..ROUNDS {
        let mut before = vec![0.0];
        weights.iter().for_each(|weight| before.push(before[before.len() - 1] + weight));
        // People per weight: what each span adds from its first value on is taken away after its last.
        let mut changes = vec![0.0; weights.len() + 1];
        for span in &free {
            let inside = before[span.last + 1] - before[span.first];
            if inside > 0.0 {
                changes[span.first] += span.inside / inside;
                changes[span.last + 1] -= span.inside / inside;
            }
        }
        let (mut per_weight, mut off) = (0.0, 0.0);
        for ((weight, change), wanted) in weights.iter_mut().zip(&changes).zip(&wanted) {
            per_weight += change;
            let expected = *weight * per_weight.max(0.0);
            off += (expected - wanted).abs();
            if expected > 0.0 {
                *weight *= wanted / expected;
            }
        }
        let sum: f64 = weights.iter().sum();
        if sum <= 0.0 || !sum.is_finite() {
            return margins.to_vec();
        }
        weights.iter_mut().for_each(|weight| *weight /= sum);
        if off <= MET * people {
            break;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the people at each value.
    fn spread(spans: &[Span], weights: &[f64]) -> Vec<f64> {
        let mut people = vec![0.0; weights.len()];
        for span in spans {
            people[span.first] += span.at_each_end;
            people[span.last] += span.at_each_end;
            let inside: f64 = weights[span.first..=span.last].iter().sum();
            for value in span.first..=span.last {
                people[value] += match inside > 0.0 {
                    true => span.inside * weights[value] / inside,
                    false => span.inside / (span.last - span.first + 1) as f64,
                };
            }
        }
        people
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Margins that some weights produce are met by those that are found.
        #[test]
        fn possible_margins_are_met(
            truth in prop::collection::vec(1_u8..20, 3..12),
            intervals in prop::collection::vec((0_usize..12, 0_usize..12, 2_u8..9), 1..30),
        ) {
            let values = truth.len();
            let spans: Vec<Span> = intervals
                .into_iter()
                .map(|(a, b, people)| {
                    let (first, last) = (a.min(b) % values, a.max(b) % values);
                    let (first, last) = (first.min(last), first.max(last));
                    Span { first, last, at_each_end: 1.0, inside: f64::from(people) - 2.0 }
                })
                .collect();
            let truth: Vec<f64> = truth.into_iter().map(f64::from).collect();
            let margins = spread(&spans, &truth);
            let found = spread(&spans, &rake(&spans, &margins, &vec![1.0; values]));
            let people: f64 = margins.iter().sum();
            let off: f64 = margins.iter().zip(&found).map(|(wanted, found)| (wanted - found).abs()).sum();
            prop_assert!(off < 0.02 * people, "{margins:?} {found:?}");
        }
    }

    #[test]
    fn margins_that_contradict_the_spans_are_approached() {
        let spans = [Span { first: 0, last: 2, at_each_end: 1.0, inside: 4.0 }];
        // Nobody at the ends, say the margins, but somebody is.
        let weights = rake(&spans, &[0.0, 5.0, 0.0], &[1.0; 3]);
        assert_eq!(weights, [0.0, 1.0, 0.0]);
        // Nobody where all are.
        let weights = rake(&[Span { first: 1, last: 1, at_each_end: 1.0, inside: 4.0 }], &[1.0, 0.0, 1.0], &[1.0; 3]);
        assert!(weights.iter().all(|weight| weight.is_finite()));
    }
}
