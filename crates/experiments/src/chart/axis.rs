//! The scale of an axis: what it spans, where its ticks are, and how they are written.

/// Distance of points from the sides, as a share of the axis.
const AIR: f64 = 0.04;

/// An axis; places run from 0 at its beginning to 1 at its end.
#[derive(Debug)]
pub(super) struct Axis {
    begin: f64,
    end: f64,
    logarithmic: bool,
    /// Place of zeros on a logarithmic axis, below its least decade.
    zero: Option<f64>,
    /// Places and labels of ticks, ascending.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Makes the axis of `y`. A linear one begins at zero, unless there are values below it.
    pub(super) fn of_y(values: &[f64], logarithmic: bool) -> Self {
        let least_positive = values.iter().copied().filter(|&value| value > 0.0).fold(f64::INFINITY, f64::min);
        if logarithmic && least_positive.is_finite() && least(values) >= 0.0 {
            return Self::logarithmic(values, least_positive);
        }
        let (low, high) = (least(values).min(0.0), greatest(values).max(0.0));
        let high = if low == high { 1.0 } else { high };
        let whole = values.iter().all(|value| value.fract() == 0.0);
        let step = step(high - low, 6.0, whole);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        Self::linear(first * step, last * step, &ticks(step, first, last))
    }

    /// Makes the axis of `x`. Ticks are at the values themselves, if their labels fit, which `fits` tells of a pair of
    /// neighbours: distance as a share of the axis, and labels.
    pub(super) fn of_x(values: &[f64], fits: impl Fn(f64, &str, &str) -> bool) -> Self {
        let mut places = values.to_vec();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let (low, high) = (least(values), greatest(values));
        let air = if high > low { (high - low) * AIR } else { low.abs().max(1.0) };
        let labels: Vec<(f64, String)> = places.iter().map(|&place| (place, plain(place))).collect();
        let span = high - low + 2.0 * air;
        if labels.windows(2).all(|pair| fits((pair[1].0 - pair[0].0) / span, &pair[0].1, &pair[1].1)) {
            return Self::linear(low - air, high + air, &labels);
        }
        let whole = values.iter().all(|value| value.fract() == 0.0);
        let mut wanted = 10.0;
        loop {
            let step = step(high - low, wanted, whole);
            let labels = ticks(step, (low / step).ceil(), (high / step).floor());
            wanted -= 1.0;
            if wanted < 2.0 || labels.windows(2).all(|pair| fits(step / span, &pair[0].1, &pair[1].1)) {
                return Self::linear(low - air, high + air, &labels);
            }
        }
    }

    fn linear(begin: f64, end: f64, labels: &[(f64, String)]) -> Self {
        let mut axis = Self { begin, end, logarithmic: false, zero: None, ticks: Vec::new() };
        axis.ticks = labels.iter().map(|(value, label)| (axis.place(*value), label.clone())).collect();
        axis
    }

    fn logarithmic(values: &[f64], least: f64) -> Self {
        let begin = power_at_most(least);
        let end = (power_at_most(greatest(values))..).find(|&power| ten(power) >= greatest(values)).unwrap_or(begin);
        let end = end.max(begin + 1);
        let decades = end - begin;
        let zero = values.contains(&0.0).then(|| f64::from(begin) - 0.15 * f64::from(decades));
        let begin_with_zero = zero.unwrap_or_else(|| f64::from(begin));
        let mut axis = Self { begin: begin_with_zero, end: f64::from(end), logarithmic: true, zero, ticks: Vec::new() };
        if zero.is_some() {
            axis.ticks.push((0.0, "0".to_owned()));
        }
        let between: &[f64] = if decades <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        for power in (begin..=end).step_by(usize::try_from(1 + (decades - 1) / 8).unwrap_or(1)) {
            for value in between.iter().map(|digit| digit * ten(power)).filter(|&value| value <= ten(end)) {
                axis.ticks.push((axis.place(value), plain(value)));
            }
        }
        axis
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let value = match (self.logarithmic, self.zero) {
            (true, Some(zero)) if value == 0.0 => zero,
            (true, _) => value.log10(),
            (false, _) => value,
        };
        (value - self.begin) / (self.end - self.begin)
    }

    pub(super) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Computes `10^power`; powers below zero of f64 are not exact, their inverses are.
fn ten(power: i32) -> f64 {
    if power < 0 { 1.0 / 10_f64.powi(-power) } else { 10_f64.powi(power) }
}

/// Returns the greatest power of ten that is not above a value.
fn power_at_most(value: f64) -> i32 {
    let power = value.log10().floor() as i32;
    if ten(power) > value {
        power - 1
    } else if ten(power + 1) <= value {
        power + 1
    } else {
        power
    }
}

/// Returns the least step that is 1, 2 or 5 times a power of ten. It makes at most `most` steps.
fn step(span: f64, most: f64, whole: bool) -> f64 {
    let least = if span > 0.0 { span / most } else { 1.0 };
    let power = power_at_most(least);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| if digit == 10.0 { ten(power + 1) } else { digit * ten(power) });
    // A hair of air, for 0.6 is more than 3 times 0.2.
    let step = steps.into_iter().find(|&step| span <= step * most * (1.0 + 1e-9)).unwrap_or(steps[3]);
    if whole { step.max(1.0) } else { step }
}

/// Returns multiples of a step with their labels, all with the step's decimals.
fn ticks(step: f64, first: f64, last: f64) -> Vec<(f64, String)> {
    let (power, greatest) = (power_at_most(step), power_at_most(first.abs().max(last.abs()) * step));
    let label = |count: f64| match count {
        0.0 => "0".to_owned(),
        _ if power < -5 || greatest > 8 => {
            let decimals = usize::try_from(greatest - power).unwrap_or(0);
            raised(&format!("{:.decimals$}", count * step / ten(greatest)), greatest)
        }
        _ => {
            let decimals = usize::try_from(-power).unwrap_or(0);
            apart(&format!("{:.decimals$}", count * step))
        }
    };
    (first as i64..=last as i64).map(|count| (count as f64 * step, label(count as f64))).collect()
}

/// Returns a number as people write it: four digits that count, thousands apart, powers of ten where there would be too many zeros.
pub(crate) fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let rounded = format!("{value:.3e}");
    let (digits, power) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let power = power.parse().unwrap_or(0);
    let shortest = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if !(-5..9).contains(&power) {
        return raised(&shortest(digits), power);
    }
    let decimals = usize::try_from(3 - power).unwrap_or(0);
    apart(&shortest(&format!("{value:.decimals$}")))
}

/// Writes the digits times a power of ten.
fn raised(digits: &str, power: i32) -> String {
    let digits = digits.replace('-', "\u{2212}");
    let power = power.to_string();
    let power = power.chars().map(|digit| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => digit.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(digit),
    });
    let power: String = power.collect();
    match digits.as_str() {
        "1" => format!("10{power}"),
        "\u{2212}1" => format!("\u{2212}10{power}"),
        _ => format!("{digits}×10{power}"),
    }
}

/// Sets thousands apart.
fn apart(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("\u{2212}", digits));
    let (whole, decimals) = digits.split_once('.').map_or((digits, None), |(whole, after)| (whole, Some(after)));
    let mut text = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(decimals) = decimals {
        text.push('.');
        text.push_str(decimals);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn linear_axes_begin_at_zero_and_end_at_a_tick() {
        let axis = Axis::of_y(&[0.11, 0.3], false);
        assert_eq!(labels(&axis), ["0", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30"]);
        assert!(near(axis.place(0.0), 0.0) && near(axis.place(0.3), 1.0));
        assert_eq!(
            labels(&Axis::of_y(&[97_000.0, 4.0], false)),
            ["0", "20,000", "40,000", "60,000", "80,000", "100,000"]
        );
        assert_eq!(labels(&Axis::of_y(&[-0.5, 1.0], false)), ["−0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels(&Axis::of_y(&[2e-7], false)), ["0", "0.5×10⁻⁷", "1.0×10⁻⁷", "1.5×10⁻⁷", "2.0×10⁻⁷"]);
    }

    #[test]
    fn whole_numbers_have_whole_ticks() {
        assert_eq!(labels(&Axis::of_y(&[0.0, 0.0], false)), ["0", "1"]);
        assert_eq!(labels(&Axis::of_y(&[2.0], false)), ["0", "1", "2"]);
        assert_eq!(
            labels(&Axis::of_x(&(1..30).map(f64::from).collect::<Vec<_>>(), |far, _, _| far > 0.1)),
            ["5", "10", "15", "20", "25"]
        );
    }

    #[test]
    fn ticks_of_x_are_at_the_values_if_they_fit() {
        let axis = Axis::of_x(&[0.05, 0.2, 0.1, 0.2], |_, _, _| true);
        assert_eq!(labels(&axis), ["0.05", "0.1", "0.2"]);
        assert!(axis.place(0.05) > 0.03 && axis.place(0.2) < 0.97);
        let crowded = Axis::of_x(&[100.0, 101.0, 900.0], |far, _, _| far > 0.05);
        assert_eq!(labels(&crowded), ["100", "200", "300", "400", "500", "600", "700", "800", "900"]);
        let alone = Axis::of_x(&[7.0], |_, _, _| true);
        assert!(labels(&alone) == ["7"] && near(alone.place(7.0), 0.5));
    }

    #[test]
    fn decades() {
        let axis = Axis::of_y(&[0.003, 40_000.0], true);
        assert_eq!(labels(&axis), ["0.001", "0.01", "0.1", "1", "10", "100", "1,000", "10,000", "100,000"]);
        assert!(near(axis.place(0.001), 0.0) && near(axis.place(100_000.0), 1.0));
        assert_eq!(labels(&Axis::of_y(&[30.0, 30.0], true)), ["10", "20", "50", "100"]);
        assert_eq!(labels(&Axis::of_y(&[1000.0], true)), ["1,000", "2,000", "5,000", "10,000"]);
    }

    #[test]
    fn zeros_of_a_logarithmic_axis_have_a_line_of_their_own() {
        let axis = Axis::of_y(&[0.0, 2.0, 900.0], true);
        assert_eq!(labels(&axis), ["0", "1", "10", "100", "1,000"]);
        assert!(near(axis.place(0.0), 0.0) && axis.place(1.0) > 0.1);
        assert!(!Axis::of_y(&[0.0, 0.0], true).is_logarithmic());
        assert!(!Axis::of_y(&[-1.0, 10.0], true).is_logarithmic());
    }

    #[test]
    fn numbers_as_people_write_them() {
        let written =
            [0.0, 0.1 + 0.2, 0.00012, 1234.5678, -4321.0, 600_000.0, 1e9, -2.5e-9, 0.025, 5e-6 * 2.0].map(plain);
        assert_eq!(
            written,
            ["0", "0.3", "0.00012", "1,235", "−4,321", "600,000", "10⁹", "−2.5×10⁻⁹", "0.025", "0.00001"]
        );
    }
}
