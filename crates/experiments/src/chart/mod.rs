//! A figure as SVG: lines with markers, and a legend below them.
//!
//! Plotters draws the parts, one by one; they are put into groups of the SVG, so that a line can be dashed and a marker can tell its values.

mod axis;
mod text;

use std::fmt::Write;

use datafusion::error::Result;
use plotters::backend::SVGBackend;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::coord::{CoordTranslate, Shift};
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, Drawable, PathElement, PointCollection, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBColor, ShapeStyle, TextStyle};

use super::broken;
use super::experiment::Figure;
use axis::Axis;
pub(super) use axis::plain;

/// Width of a chart: nearly a phone's, because a larger one is shrunk with its letters.
const WIDTH: i32 = 420;
/// Of what is between the axes.
const HEIGHT: i32 = 230;
const MARGIN: i32 = 16;

const TITLE: f64 = 16.0;
const LABEL: f64 = 13.5;
const TICK: f64 = 12.5;
/// Of a line of the legend.
const ENTRY: i32 = 22;
/// Of the line in front of a name of the legend.
const SAMPLE: i32 = 30;
const BEADS: usize = 40;

const DARK: RGBColor = RGBColor(31, 35, 40);
const GREY: RGBColor = RGBColor(87, 96, 106);
const GRID: RGBColor = RGBColor(226, 230, 235);
const AXIS: RGBColor = RGBColor(140, 149, 159);
const WHITE: RGBColor = RGBColor(255, 255, 255);

/// Of Okabe and Ito, which people with any colour vision tell apart; without yellow, which is faint on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

type Pixel = (i32, i32);
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plane = Cartesian2d<RangedCoordf64, RangedCoordf64>;

/// Returns a chart of named series, each by ascending `x`.
pub fn draw(figure: &Figure<'_>, series: &[(&str, Vec<(f64, f64)>)]) -> Result<String> {
    let points = || series.iter().flat_map(|(_, points)| points);
    let y = Axis::of_y(&points().map(|point| point.1).collect::<Vec<_>>(), figure.logarithmic);
    let widest = y.ticks.iter().map(|(_, label)| text::width(label, TICK, false)).fold(0.0, f64::max);

    let room = f64::from(WIDTH - 2 * MARGIN);
    let title = text::lines(figure.title, TITLE, true, room);
    let scale = if y.is_logarithmic() { " (logarithmic)" } else { "" };
    let y_title = text::lines(&format!("{}{scale}", figure.y), LABEL, false, room);
    let x_title = text::lines(figure.x, LABEL, false, room);

    let left = MARGIN + widest.ceil() as i32 + 8;
    let right = WIDTH - MARGIN - 4;
    let top = MARGIN + 22 * lines(&title) + 6 + 18 * lines(&y_title) + 8;
    let bottom = top + HEIGHT;
    let length = f64::from(right - left);
    let x = Axis::of_x(&points().map(|point| point.0).collect::<Vec<_>>(), |far, one, other| {
        far * length > (text::width(one, TICK, false) + text::width(other, TICK, false)) / 2.0 + 14.0
    });
    let legend = Legend::new(series, bottom + 28 + 18 * lines(&x_title) + 16);
    let height = legend.bottom + MARGIN - 6;

    let plane = Plane::new(0.0..1.0, 0.0..1.0, (left..right, bottom..top));
    let at = |&(a, b): &(f64, f64)| plane.translate(&(x.place(a), y.place(b)));
    let mut svg = Svg { size: (WIDTH as u32, height as u32), text: String::new() };
    svg.group("class=\"paper\"", |area| fill(area, &Rectangle::new([(0, 0), (WIDTH, height)], WHITE.filled())))?;
    svg.group("class=\"axes\"", |area| {
        for (place, label) in &y.ticks {
            let (_, y) = plane.translate(&(0.0, *place));
            stroke(area, vec![(left, y), (right, y)], if label == "0" { AXIS } else { GRID }, 1)?;
            write(area, label, (left - 8, y), TICK, GREY, (HPos::Right, VPos::Center))?;
        }
        stroke(area, vec![(left, bottom), (right, bottom)], AXIS, 1)?;
        for (place, label) in &x.ticks {
            let (x, _) = plane.translate(&(*place, 0.0));
            stroke(area, vec![(x, bottom), (x, bottom + 5)], AXIS, 1)?;
            write(area, label, (x, bottom + 9), TICK, GREY, (HPos::Center, VPos::Top))?;
        }
        for (line, number) in title.iter().zip(0..) {
            write(area, line, (MARGIN, MARGIN + 22 * number), -TITLE, DARK, (HPos::Left, VPos::Top))?;
        }
        for (line, number) in y_title.iter().zip(0..) {
            let place = (MARGIN, MARGIN + 22 * lines(&title) + 6 + 18 * number);
            write(area, line, place, LABEL, GREY, (HPos::Left, VPos::Top))?;
        }
        for (line, number) in x_title.iter().zip(0..) {
            let place = ((left + right) / 2, bottom + 30 + 18 * number);
            write(area, line, place, LABEL, GREY, (HPos::Center, VPos::Top))?;
        }
        Ok(())
    })?;
    // The first is drawn last: it is the one that must not be covered.
    for (number, (name, points)) in series.iter().enumerate().rev() {
        let look = Look::of(number);
        let places: Vec<Pixel> = points.iter().map(at).collect();
        svg.open(&format!("class=\"series\" data-name=\"{}\"", escaped(name)));
        if places.len() > 1 {
            svg.group(look.dashes(), |area| stroke(area, places.clone(), look.colour, 2))?;
        }
        // A line of many points is not a string of beads.
        for (place, (x, y)) in places.iter().zip(points).step_by(points.len().div_ceil(BEADS).max(1)) {
            svg.open("");
            let _ = write!(svg.text, "<title>{}: {}, {}</title>", escaped(name), plain(*x), plain(*y));
            svg.group("", |area| look.mark(area, *place))?;
            svg.close();
        }
        svg.close();
    }
    for (number, (name, _)) in series.iter().enumerate() {
        let (look, (x, y)) = (Look::of(number), legend.places[number]);
        svg.open(&format!("class=\"entry\" data-name=\"{}\"", escaped(name)));
        svg.group(look.dashes(), |area| stroke(area, vec![(x, y), (x + SAMPLE, y)], look.colour, 2))?;
        svg.group("", |area| {
            look.mark(area, (x + SAMPLE / 2, y))?;
            write(area, &legend.names[number], (x + SAMPLE + 8, y), LABEL, DARK, (HPos::Left, VPos::Center))
        })?;
        svg.close();
    }
    Ok(svg.finish(&format!("{}: {} by {}", figure.title, figure.y, figure.x)))
}

fn lines(text: &[String]) -> i32 {
    text.len() as i32
}

/// Names of the series, below the plot: in one line, if they fit, otherwise in columns.
struct Legend {
    names: Vec<String>,
    /// Beginning of the middle of each name's line.
    places: Vec<Pixel>,
    bottom: i32,
}

impl Legend {
    fn new(series: &[(&str, Vec<(f64, f64)>)], top: i32) -> Self {
        let room = WIDTH - 2 * MARGIN;
        let most = f64::from(room - SAMPLE - 8);
        let names: Vec<String> = series.iter().map(|(name, _)| text::cut(name, LABEL, most)).collect();
        let widths: Vec<i32> =
            names.iter().map(|name| SAMPLE + 8 + text::width(name, LABEL, false).ceil() as i32 + 20).collect();
        let middle = top + ENTRY / 2;
        if widths.iter().sum::<i32>() <= room + 20 {
            let begin = |number| MARGIN + widths[..number].iter().sum::<i32>();
            let places = (0..names.len()).map(|number| (begin(number), middle)).collect();
            return Self { names, places, bottom: top + ENTRY };
        }
        let column = widths.iter().copied().max().unwrap_or(room);
        let fitting = ((room + 20) / column).max(1) as usize;
        // As many in each line, as far as possible.
        let lines = names.len().div_ceil(fitting);
        let columns = names.len().div_ceil(lines);
        let place = |number| (MARGIN + (number % columns) as i32 * column, middle + (number / columns) as i32 * ENTRY);
        Self { places: (0..names.len()).map(place).collect(), names, bottom: top + lines as i32 * ENTRY }
    }
}

/// Look by which a series is told from the others.
#[derive(Clone, Copy)]
struct Look {
    colour: RGBColor,
    shape: &'static [(i32, i32)],
    /// Of the second round of colours: dashed, with hollow markers.
    again: bool,
}

/// Markers, none for the circle.
const SHAPES: [&[(i32, i32)]; 7] = [
    &[],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -6), (5, 4), (-5, 4)],
    &[(0, -6), (6, 0), (0, 6), (-6, 0)],
    &[(0, 6), (5, -4), (-5, -4)],
    &[(-5, -2), (-2, -5), (0, -2), (2, -5), (5, -2), (2, 0), (5, 2), (2, 5), (0, 2), (-2, 5), (-5, 2), (-2, 0)],
    &[(-2, -6), (2, -6), (2, -2), (6, -2), (6, 2), (2, 2), (2, 6), (-2, 6), (-2, 2), (-6, 2), (-6, -2), (-2, -2)],
];

impl Look {
    fn of(number: usize) -> Self {
        let place = number % COLOURS.len();
        Self { colour: COLOURS[place], shape: SHAPES[place], again: number >= COLOURS.len() }
    }

    fn dashes(self) -> &'static str {
        if self.again { "stroke-dasharray=\"7 4\"" } else { "" }
    }

    fn mark(self, area: &Area<'_>, (x, y): Pixel) -> Result<()> {
        if self.shape.is_empty() {
            fill(area, &Circle::new((x, y), 6, WHITE.filled()))?;
            fill(area, &Circle::new((x, y), 5, self.colour.filled()))?;
            return if self.again { fill(area, &Circle::new((x, y), 3, WHITE.filled())) } else { Ok(()) };
        }
        let mut outline: Vec<Pixel> = self.shape.iter().map(|(a, b)| (x + a, y + b)).collect();
        outline.extend([outline[0], outline[1]]);
        stroke(area, outline.clone(), WHITE, 3)?;
        fill(area, &Polygon::new(outline.clone(), if self.again { WHITE } else { self.colour }.filled()))?;
        if self.again { stroke(area, outline, self.colour, 2) } else { Ok(()) }
    }
}

struct Svg {
    size: (u32, u32),
    text: String,
}

impl Svg {
    fn open(&mut self, attributes: &str) {
        let _ = writeln!(self.text, "<g {attributes}>");
    }

    fn close(&mut self) {
        self.text.push_str("</g>\n");
    }

    /// Draws with plotters, and keeps all but the root of its SVG.
    fn group(&mut self, attributes: &str, draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<()> {
        let mut drawn = String::new();
        {
            let area = SVGBackend::with_string(&mut drawn, self.size).into_drawing_area();
            draw(&area)?;
            area.present().map_err(broken)?;
        }
        let inner = drawn.split_once(">\n").and_then(|(_, inner)| inner.rsplit_once("</svg>"));
        self.open(attributes);
        // Plotters writes these of everything; they say nothing.
        self.text.push_str(&inner.map_or("", |(inner, _)| inner).replace(" opacity=\"1\"", ""));
        self.close();
        Ok(())
    }

    fn finish(self, label: &str) -> String {
        let ((width, height), label) = (self.size, escaped(label));
        let inner = self.text.replace("<g >", "<g>");
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n{inner}</svg>\n"
        )
    }
}

fn fill<'a, E>(area: &Area<'a>, element: &E) -> Result<()>
where
    E: Drawable<SVGBackend<'a>>,
    for<'b> &'b E: PointCollection<'b, Pixel>,
{
    area.draw(element).map_err(broken)
}

fn stroke(area: &Area<'_>, places: Vec<Pixel>, colour: RGBColor, width: u32) -> Result<()> {
    area.draw(&PathElement::new(places, ShapeStyle::from(colour).stroke_width(width))).map_err(broken)
}

/// Writes a line of text; a negative size is bold.
fn write(
    area: &Area<'_>,
    text: &str,
    place: Pixel,
    size: f64,
    colour: RGBColor,
    (horizontal, vertical): (HPos, VPos),
) -> Result<()> {
    let style = if size < 0.0 { FontStyle::Bold } else { FontStyle::Normal };
    // Plotters takes sizes of another measure than SVG's.
    let font = FontDesc::new(FontFamily::SansSerif, size.abs() * 1.24, style);
    let style = TextStyle::from(font).color(&colour).pos(Pos::new(horizontal, vertical));
    area.draw(&Text::new(text, place, style)).map_err(broken)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(logarithmic: bool, series: &[(&str, Vec<(f64, f64)>)]) -> String {
        let title = "Figure 1: a < b & \"c\"";
        let figure = Figure { id: "1", title, x: "update volume r", y: "tuples", logarithmic };
        let svg = draw(&figure, series).expect("a chart");
        well_formed(&svg);
        inside(&svg);
        svg
    }

    /// Checks that its own tag closes every tag, and that text has no tags.
    fn well_formed(svg: &str) {
        let mut open = Vec::new();
        for part in svg.split('<').skip(1) {
            let (tag, text) = part.split_once('>').expect("the end of a tag");
            assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "{part}");
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{part}"),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().expect("a name")),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        let entities = svg.split('&').skip(1);
        assert!(
            entities
                .into_iter()
                .all(|rest| ["amp;", "lt;", "gt;", "quot;", "apos;"].iter().any(|e| rest.starts_with(e)))
        );
    }

    /// Checks that lines and markers are between the axes.
    fn inside(svg: &str) {
        let lines = svg.split("points=\"").skip(1).map(|rest| rest.split('"').next().expect("an end"));
        for point in lines.flat_map(str::split_whitespace) {
            let (x, y) = point.split_once(',').expect("a pair");
            let (x, y): (i32, i32) = (x.parse().expect("a number"), y.parse().expect("a number"));
            assert!((0..=WIDTH).contains(&x) && (MARGIN..HEIGHT + 400).contains(&y), "{point}");
        }
    }

    fn markers(svg: &str) -> usize {
        svg.matches("<title>").count()
    }

    #[test]
    fn points_tell_their_values_and_text_is_escaped() {
        let svg = chart(false, &[("l < 2 & \"x\"", vec![(400.0, 0.0), (800.0, 12345.6)]), ("m", vec![(400.0, 1.0)])]);
        assert!(svg.contains("<title>l &lt; 2 &amp; &quot;x&quot;: 800, 12,346</title>"), "{svg}");
        assert!(svg.contains("Figure 1: a &lt; b &amp; &quot;c&quot;") && markers(&svg) == 3);
        assert_eq!(svg.matches("class=\"series\"").count(), 2);
        assert_eq!(svg.matches("class=\"entry\"").count(), 2);
    }

    #[test]
    fn single_points_equal_values_and_zeros() {
        for logarithmic in [false, true] {
            for values in [[0.0, 0.0], [5.0, 5.0], [0.0, 7e8], [1e-9, 1e-9]] {
                let line = vec![(1.0, values[0]), (2.0, values[1])];
                assert_eq!(markers(&chart(logarithmic, &[("a", line), ("b", vec![(2.0, values[0])])])), 3);
            }
            assert_eq!(markers(&chart(logarithmic, &[("a", vec![(0.0, 3.0)])])), 1);
            assert_eq!(markers(&chart(logarithmic, &[("a", vec![(0.0, -3.0), (1.0, 4.0)])])), 2);
        }
        assert!(chart(true, &[("a", vec![(1.0, 3.0)])]).contains("tuples (logarithmic)"));
        assert!(!chart(true, &[("a", vec![(1.0, 0.0)])]).contains("logarithmic"));
    }

    #[test]
    fn twelve_series_have_twelve_looks() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let svg = chart(false, &names.map(|name| (name, vec![(1.0, 2.0), (2.0, 3.0)])));
        assert_eq!(svg.matches("class=\"entry\"").count(), 12);
        let mut looks: Vec<_> = (0..12).map(Look::of).map(|look| (look.colour.0, look.shape, look.again)).collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 12);
    }

    #[test]
    fn a_line_of_many_points_has_few_markers() {
        let line: Vec<(f64, f64)> = (0..500).map(|x| (f64::from(x), f64::from(x % 7))).collect();
        let svg = chart(false, &[("a", line)]);
        assert!((20..=BEADS).contains(&markers(&svg)), "{}", markers(&svg));
    }

    #[test]
    fn names_of_the_legend_do_not_meet() {
        let names = [
            "short",
            "a name of some length",
            "another name of some length",
            "m = 2",
            "the longest name of all of them",
        ];
        let legend = Legend::new(&names.map(|name| (name, Vec::new())), 0);
        for (number, (x, y)) in legend.places.iter().enumerate() {
            let end = x + SAMPLE + 8 + text::width(&legend.names[number], LABEL, false) as i32;
            assert!(end <= WIDTH - MARGIN && y + ENTRY / 2 <= legend.bottom, "{}", legend.names[number]);
            let next = legend.places.iter().filter(|place| place.1 == *y && place.0 > *x).map(|place| place.0).min();
            assert!(next.is_none_or(|next| next > end), "{}", legend.names[number]);
        }
    }
}
