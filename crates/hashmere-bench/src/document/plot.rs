//! Plots as SVG, legible on a light and on a dark page.

use std::fmt::Write;

/// What is drawn.
pub struct Plot<'a> {
    /// Above it.
    pub title: &'a str,
    /// Below the axis of powers of ten, or of two.
    pub x: &'a str,
    /// Beside the other.
    pub y: &'a str,
    /// Lines: what each is called, and its points from left to right.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 52.0;
/// Colours of the lines on a light and on a dark page: Okabe and Ito's, which the colour-blind can tell apart.
pub const COLOURS: [(&str, &str); 7] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff9a4d"),
    ("#009e73", "#3fd6a5"),
    ("#b0368a", "#e59ac9"),
    ("#7a6a00", "#f0e442"),
    ("#555555", "#bbbbbb"),
    ("#8c510a", "#dfc27d"),
];
/// Points of a line of text, and of the least distance between two names.
const TEXT: f64 = 13.0;

impl Plot<'_> {
    /// The file.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let (first, last) = ends(points().map(|(x, _)| *x));
        let (_, most) = ends(points().map(|(_, y)| *y));
        let step = step_for(most);
        let top = (most / step).ceil().max(1.0) * step;
        let width = WIDTH - LEFT - RIGHT;
        let height = HEIGHT - TOP - BOTTOM;
        let span = (last / first).log10();
        let x = |value: f64| LEFT + if span > 0.0 { (value / first).log10() / span * width } else { width / 2.0 };
        let y = |value: f64| TOP + height - value / top * height;

        let mut svg = String::new();
        let out = &mut svg;
        line(
            out,
            format_args!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">"),
        );
        line(out, format_args!("<title>{}</title>", escaped(self.title)));
        let colours = |pick: fn(&(&'static str, &'static str)) -> &'static str| {
            COLOURS.iter().enumerate().fold(String::new(), |text, (n, pair)| {
                text + &format!(".l{n}{{stroke:{0}}}.t{n}{{fill:{0}}}", pick(pair))
            })
        };
        line(
            out,
            format_args!(
                "<style>text{{font:{TEXT}px sans-serif;fill:#222}}.grid{{stroke:#ccc}}polyline{{fill:none;stroke-width:2.5}}\
                 {}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}.grid{{stroke:#444}}{}}}</style>",
                colours(|pair| pair.0),
                colours(|pair| pair.1)
            ),
        );
        line(out, format_args!("<text x=\"{LEFT}\" y=\"22\" font-weight=\"bold\">{}</text>", escaped(self.title)));
        for n in 0..=(top / step).round() as u32 {
            let value = f64::from(n) * step;
            let (right, at) = (LEFT + width, y(value));
            line(out, format_args!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right:.1}\"/>"));
            let (left, below) = (LEFT - 8.0, at + 4.5);
            line(out, format_args!("<text x=\"{left}\" y=\"{below:.1}\" text-anchor=\"end\">{}</text>", short(value)));
        }
        let mut marks: Vec<f64> = points().map(|(x, _)| *x).collect();
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        for mark in marks {
            let (at, below) = (x(mark), HEIGHT - BOTTOM + 20.0);
            line(out, format_args!("<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{}</text>", short(mark)));
        }
        let (middle, below) = (LEFT + width / 2.0, HEIGHT - 12.0);
        line(out, format_args!("<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{}</text>", escaped(self.x)));
        let half = TOP + height / 2.0;
        line(
            out,
            format_args!(
                "<text x=\"16\" y=\"{half}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {half})\">{}</text>",
                escaped(self.y)
            ),
        );
        for (n, (_, points)) in self.lines.iter().enumerate() {
            let n = n % COLOURS.len();
            let path =
                points.iter().fold(String::new(), |text, (px, py)| text + &format!("{:.1},{:.1} ", x(*px), y(*py)));
            line(out, format_args!("<polyline class=\"l{n}\" points=\"{}\"/>", path.trim_end()));
            for (px, py) in points {
                line(out, format_args!("<circle class=\"t{n}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", x(*px), y(*py)));
            }
        }
        for (n, (name, at)) in self.names(y).into_iter().enumerate() {
            let (class, left) = (n % COLOURS.len(), LEFT + width + 12.0);
            line(out, format_args!("<text class=\"t{class}\" x=\"{left}\" y=\"{at:.1}\">{}</text>", escaped(&name)));
        }
        svg + "</svg>\n"
    }

    /// The names of the lines and where they are: at their ends, moved apart where two would overlap.
    fn names(&self, y: impl Fn(f64) -> f64) -> Vec<(String, f64)> {
        let ends = self.lines.iter().map(|(_, points)| points.last().map_or(TOP, |(_, value)| y(*value) + 4.5));
        let mut placed: Vec<(usize, f64)> = ends.enumerate().collect();
        placed.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut least = TOP;
        for (_, at) in &mut placed {
            *at = at.max(least);
            least = *at + TEXT + 3.0;
        }
        // What went below the plot moves up again.
        let mut most = HEIGHT - BOTTOM + 4.5;
        for (_, at) in placed.iter_mut().rev() {
            *at = at.min(most);
            most = *at - TEXT - 3.0;
        }
        placed.sort_by_key(|(n, _)| *n);
        placed.into_iter().zip(&self.lines).map(|((_, at), (name, _))| (name.clone(), at)).collect()
    }
}

/// Appends a line of the file.
pub fn line(out: &mut String, text: std::fmt::Arguments) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{text}");
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

/// A round step that divides a range into about five parts.
pub fn step_for(most: f64) -> f64 {
    let rough = (most / 5.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| *step >= rough).unwrap_or(10.0 * power)
}

/// A number as an axis shows it.
pub fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} M", value / 1e6),
        value if value >= 1e4 => format!("{} k", value / 1e3),
        value => format!("{}", (value * 1000.0).round() / 1000.0),
    }
}

/// A text as the file has it.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_overlap_and_stay_inside() {
        let lines = (0..7).map(|n| (format!("line {n}"), vec![(1.0, 1.0), (10.0, 100.0 + f64::from(n))])).collect();
        let plot = Plot { title: "a < b", x: "x", y: "y", lines };
        let mut at: Vec<f64> = plot.names(|value| TOP + value).into_iter().map(|(_, at)| at).collect();
        at.sort_by(f64::total_cmp);
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] >= TEXT), "{at:?}");
        assert!(at[0] >= 0.0 && at[6] <= HEIGHT, "{at:?}");
        let svg = plot.svg();
        assert!(svg.contains("a &lt; b") && svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn steps_are_round() {
        for (most, step) in [(1.0, 0.2), (4.0, 1.0), (700.0, 200.0), (99.0, 20.0), (0.0, 1e-9)] {
            assert!((step_for(most) - step).abs() < step / 100.0 + 1e-9, "{most}: {}", step_for(most));
        }
        assert_eq!([short(1000.0), short(10_000.0), short(1e7), short(0.2)], ["1000", "10 k", "10 M", "0.2"]);
    }
}
