//! Runs as a picture: above, how many of the keys asked for came; below, the errors; over the same time.

use super::{Bucket, Run, BUCKET_MS};
use crate::document::plot::{escaped, line, short, step_for, COLOURS};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 130.0;
/// Where the panels begin, and how high each is.
const PANELS: [f64; 2] = [64.0, 252.0];
const PANEL: f64 = 128.0;
/// Buckets that one point is of.
const TOGETHER: usize = 5;

/// The points of a run in each panel: per cent of the keys asked for, errors a second.
fn points(run: &Run) -> [Vec<(f64, f64)>; 2] {
    let mut both = [Vec::new(), Vec::new()];
    for (number, buckets) in run.buckets.chunks(TOGETHER).enumerate() {
        let sum = |of: fn(&Bucket) -> u32| f64::from(buckets.iter().map(of).sum::<u32>());
        let seconds = buckets.len() as f64 * BUCKET_MS as f64 / 1000.0;
        let at = (number * TOGETHER) as f64 * BUCKET_MS as f64 / 1000.0 + seconds / 2.0;
        let gets = sum(|bucket| bucket.gets);
        if gets > 0.0 {
            both[0].push((at, 100.0 * sum(|bucket| bucket.hits) / gets));
        }
        both[1].push((at, sum(|bucket| bucket.errors) / seconds));
    }
    both
}

/// The file.
pub fn svg(title: &str, runs: &[Run]) -> String {
    let lines: Vec<[Vec<(f64, f64)>; 2]> = runs.iter().map(points).collect();
    let seconds = runs.iter().map(|run| run.buckets.len()).max().unwrap_or(1) as f64 * BUCKET_MS as f64 / 1000.0;
    let errors = lines.iter().flat_map(|both| &both[1]).map(|(_, y)| *y).fold(0.0, f64::max);
    let step = step_for(errors.max(1.0));
    let tops = [100.0, (errors / step).ceil().max(1.0) * step];
    let width = WIDTH - LEFT - RIGHT;
    let x = |second: f64| LEFT + second / seconds * width;
    let y = |panel: usize, value: f64| PANELS[panel] + PANEL - value / tops[panel] * PANEL;

    let mut svg = String::new();
    let out = &mut svg;
    line(out, format_args!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">"));
    line(out, format_args!("<title>{}</title>", escaped(title)));
    let colours =
        |pick: fn(&(&'static str, &'static str)) -> &'static str| {
            COLOURS.iter().take(runs.len()).enumerate().fold(String::new(), |text, (n, pair)| {
                text + &format!(".l{n}{{stroke:{0}}}.t{n}{{fill:{0}}}", pick(pair))
            })
        };
    line(
        out,
        format_args!(
            "<style>text{{font:13px sans-serif;fill:#222}}.grid{{stroke:#ccc}}.event{{stroke:#777;stroke-dasharray:4 3}}\
             polyline{{fill:none;stroke-width:2}}{}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}.grid{{stroke:#444}}\
             .event{{stroke:#aaa}}{}}}</style>",
            colours(|pair| pair.0),
            colours(|pair| pair.1)
        ),
    );
    line(out, format_args!("<text x=\"{LEFT}\" y=\"22\" font-weight=\"bold\">{}</text>", escaped(title)));
    for (panel, (name, step)) in [("values found, % of gets", 25.0), ("errors a second", step)].into_iter().enumerate()
    {
        let above = PANELS[panel] - 12.0;
        line(out, format_args!("<text x=\"{LEFT}\" y=\"{above}\">{name}</text>"));
        for n in 0..=(tops[panel] / step).round() as u32 {
            let value = f64::from(n) * step;
            let (right, at, left) = (LEFT + width, y(panel, value), LEFT - 8.0);
            line(out, format_args!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right:.1}\"/>"));
            let below = at + 4.5;
            line(out, format_args!("<text x=\"{left}\" y=\"{below:.1}\" text-anchor=\"end\">{}</text>", short(value)));
        }
        for event in runs.first().map_or(&[][..], |run| &run.events) {
            let (at, top, bottom) = (x(event.at_ms as f64 / 1000.0), PANELS[panel], PANELS[panel] + PANEL);
            line(out, format_args!("<path class=\"event\" d=\"M{at:.1} {top}V{bottom}\"/>"));
        }
        for (n, both) in lines.iter().enumerate() {
            let path = both[panel]
                .iter()
                .fold(String::new(), |text, (at, value)| text + &format!("{:.1},{:.1} ", x(*at), y(panel, *value)));
            line(out, format_args!("<polyline class=\"l{n}\" points=\"{}\"/>", path.trim_end()));
        }
    }
    let below = PANELS[1] + PANEL + 20.0;
    for second in (0..=seconds as u32).step_by(if seconds > 12.0 { 2 } else { 1 }) {
        let at = x(f64::from(second));
        line(out, format_args!("<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{second}</text>"));
    }
    let middle = LEFT + width / 2.0;
    line(out, format_args!("<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">seconds</text>", below + 18.0));
    for (n, run) in runs.iter().enumerate() {
        let (left, at) = (LEFT + width + 14.0, PANELS[0] + 18.0 * n as f64 + 6.0);
        line(out, format_args!("<text class=\"t{n}\" x=\"{left}\" y=\"{at}\">{}</text>", escaped(&run.name)));
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_its_lines_and_every_point_is_inside() {
        let bucket = |hits, errors| Bucket { gets: 100, hits, misses: 100 - hits - errors, errors };
        let buckets = [vec![bucket(100, 0); 50], vec![bucket(20, 40); 5], vec![Bucket::default(); 45]].concat();
        let run = |name: &str| Run {
            name: name.into(),
            machine: String::new(),
            keys: 1,
            rate: 1,
            buckets: buckets.clone(),
            events: Vec::new(),
            wrong: 0,
            lost: 0,
        };
        let drawn = svg("a < b", &[run("one"), run("two")]);
        assert_eq!(drawn.matches("<polyline").count(), 4);
        assert!(drawn.contains("a &lt; b") && !drawn.contains("NaN") && drawn.ends_with("</svg>\n"), "{drawn}");
        for pair in drawn.split("points=\"").skip(1).flat_map(|rest| rest.split('"').next().unwrap().split(' ')) {
            let (x, y) = pair.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((LEFT..=WIDTH - RIGHT).contains(&x) && (PANELS[0]..=PANELS[1] + PANEL).contains(&y), "{pair}");
        }
        // 40 of 100 in each of five buckets of 20 ms.
        assert!(points(&run("one"))[1].contains(&(1.05, 2000.0)), "{:?}", points(&run("one"))[1]);
    }
}
