//! Tables of what was measured, as Markdown that is readable in a terminal too.
//!
//! Why here: the same text is printed and kept.
//! Invariants: a ratio is taken within one round, against the floor of that round; medians come after ratios.

use super::super::thousands;
use super::rows::{Kind, Row, Sample};
use super::subjects::{FLOOR, OURS};

/// What one server's rounds gave, or why they gave nothing.
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) samples: Result<Vec<Sample>, String>,
}

/// How ours stands in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Standing {
    /// From 1, among the servers; the floor is none.
    pub(super) place: usize,
    pub(super) of: usize,
    /// Against the floor, where the row has one.
    pub(super) ratio: Option<f64>,
}

/// A row's table, and how ours stands in it.
pub(super) fn table(row: &Row, measured: &[Measured]) -> (String, Option<Standing>) {
    let floor = measured.iter().find(|server| server.name == FLOOR).and_then(|server| server.samples.as_ref().ok());
    let mut lines: Vec<(Option<f64>, Option<f64>, Vec<String>)> = Vec::new();
    for server in measured {
        let samples = match &server.samples {
            Ok(samples) => samples,
            Err(problem) => {
                lines.push((None, None, vec![server.name.to_owned(), problem.clone()]));
                continue;
            }
        };
        let figures: Vec<f64> = samples.iter().map(|sample| figure(&row.kind, sample)).collect();
        let ratio = floor.map(|floor| {
            let each = figures.iter().zip(floor).map(|(own, floor)| own / figure(&row.kind, floor));
            median(each.collect())
        });
        let mut cells = vec![server.name.to_owned(), number(median(figures.clone())), range(&figures)];
        cells.push(ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")));
        cells.extend(details(&row.kind, samples));
        let is_whole = samples.iter().all(|sample| is_whole(&row.kind, sample));
        lines.push((is_whole.then(|| median(figures)), ratio, cells));
    }
    let standing = standing(measured, &lines);
    let heads = [&["server", unit(&row.kind), "lowest to highest", "x floor"], detail_heads(&row.kind)].concat();
    let text = markdown(&heads, &lines.into_iter().map(|(_, _, cells)| cells).collect::<Vec<_>>());
    (text, standing)
}

fn standing(measured: &[Measured], lines: &[(Option<f64>, Option<f64>, Vec<String>)]) -> Option<Standing> {
    let ours = measured.iter().position(|server| server.name == OURS)?;
    let (own, ratio, _) = lines.get(ours)?;
    let own = (*own)?;
    let servers = measured.iter().zip(lines).filter(|(server, _)| server.name != FLOOR);
    let figures: Vec<f64> = servers.filter_map(|(_, (figure, _, _))| *figure).collect();
    let place = 1 + figures.iter().filter(|figure| **figure < own).count();
    Some(Standing { place, of: figures.len(), ratio: *ratio })
}

/// Whether everything was still there at the end: who lets go of what was opened has no place among those who hold it.
fn is_whole(kind: &Kind, sample: &Sample) -> bool {
    !matches!(kind, Kind::Hold(..)) || get(sample, "alive") >= get(sample, "opened")
}

/// What a row is judged by; less is better.
fn figure(kind: &Kind, sample: &Sample) -> f64 {
    let get = |name| get(sample, name);
    match kind {
        Kind::Http { .. } | Kind::Stdio(_) => (get("user_ns") + get("system_ns")) / get("answers") / 1_000.0,
        Kind::Hold(..) => get("proportional_bytes") / get("opened") / 1_024.0,
        Kind::Peak { .. } => get("peak_bytes") / get("message_bytes"),
        Kind::Start => get("elapsed_ns") / 1_000_000.0,
    }
}

fn unit(kind: &Kind) -> &'static str {
    match kind {
        Kind::Http { .. } | Kind::Stdio(_) => "CPU µs each",
        Kind::Hold(..) => "KiB each",
        Kind::Peak { .. } => "x messages",
        Kind::Start => "ms",
    }
}

fn detail_heads(kind: &Kind) -> &'static [&'static str] {
    match kind {
        Kind::Http { .. } => &["user + system", "answers/s", "CPU busy"],
        Kind::Stdio(_) => &["user + system", "answers/s", "CPU busy", "round trip µs"],
        Kind::Hold(..) => &["resident KiB", "alive"],
        Kind::Peak { .. } => &["peak MiB"],
        Kind::Start => &[],
    }
}

fn details(kind: &Kind, samples: &[Sample]) -> Vec<String> {
    let middle = |of: &dyn Fn(&Sample) -> f64| median(samples.iter().map(of).collect());
    let each = |name: &str| middle(&|sample| get(sample, name) / get(sample, "answers") / 1_000.0);
    match kind {
        Kind::Http { .. } | Kind::Stdio(_) => {
            let elapsed = |sample: &Sample| get(sample, "elapsed_ns");
            let rate = middle(&|sample| get(sample, "answers") / elapsed(sample) * 1e9);
            let cpu = |sample: &Sample| get(sample, "user_ns") + get(sample, "system_ns");
            let busy = middle(&|sample| cpu(sample) / elapsed(sample) * 100.0);
            let mut cells = vec![
                format!("{} + {}", number(each("user_ns")), number(each("system_ns"))),
                thousands(rate),
                format!("{busy:.0} %"),
            ];
            if let Kind::Stdio(_) = kind {
                let round_trip = middle(&|sample| get(sample, "median_ns") / 1_000.0);
                cells.push(if round_trip > 0.0 { number(round_trip) } else { "-".to_owned() });
            }
            cells
        }
        Kind::Hold(..) => vec![
            number(middle(&|sample| get(sample, "resident_bytes") / get(sample, "opened") / 1_024.0)),
            format!("{:.0} of {:.0}", middle(&|sample| get(sample, "alive")), middle(&|sample| get(sample, "opened"))),
        ],
        Kind::Peak { .. } => vec![number(middle(&|sample| get(sample, "peak_bytes") / 1_048_576.0))],
        Kind::Start => Vec::new(),
    }
}

/// A figure of a run; what is missing is no number, and is seen as such in a table.
fn get(sample: &Sample, name: &str) -> f64 {
    sample.get(name).copied().unwrap_or(f64::NAN)
}

/// A table with its columns under each other.
pub(super) fn markdown(heads: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize, head: &str| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head.chars().count(), 4]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = heads.iter().enumerate().map(|(column, head)| width(column, head)).collect();
    let line = |cells: &[&str]| {
        let mut text = String::from("|");
        for (column, width) in widths.iter().enumerate() {
            let cell = cells.get(column).copied().unwrap_or_default();
            // The first column has names, the others numbers.
            text += &if column == 0 { format!(" {cell:<width$} |") } else { format!(" {cell:>width$} |") };
        }
        text + "\n"
    };
    let mut text = line(heads) + "|";
    for (column, width) in widths.iter().enumerate() {
        let dashes = "-".repeat(*width - usize::from(column > 0));
        text += &if column == 0 { format!(" {dashes} |") } else { format!(" {dashes}: |") };
    }
    text += "\n";
    for row in rows {
        text += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

/// The middle one, or the mean of the middle two.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle.wrapping_sub(1)), values.get(middle)) {
        (Some(below), Some(above)) if values.len().is_multiple_of(2) => f64::midpoint(*below, *above),
        (_, Some(middle)) => *middle,
        _ => f64::NAN,
    }
}

/// Three digits that mean something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => thousands(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn range(values: &[f64]) -> String {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} to {}", number(lowest), number(highest))
}

#[cfg(test)]
mod tests {
    use super::super::rows::Need;
    use super::*;

    const ROW: Row = Row { name: "cold-start", title: "Starts", kind: Kind::Start };

    fn measured(name: &'static str, milliseconds: &[f64]) -> Measured {
        let sample = |milliseconds: &f64| Sample::from([("elapsed_ns".to_owned(), milliseconds * 1e6)]);
        Measured { name, samples: Ok(milliseconds.iter().map(sample).collect()) }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The second round was twice as slow for both, which is the machine's doing.
        let servers = [measured(FLOOR, &[1.0, 2.0, 1.0]), measured(OURS, &[1.5, 3.0, 1.5])];
        let (text, standing) = table(&ROW, &servers);
        assert_eq!(standing, Some(Standing { place: 1, of: 1, ratio: Some(1.5) }));
        let ours = text.lines().find(|line| line.contains(OURS)).unwrap();
        assert_eq!(
            ours.split('|').map(str::trim).collect::<Vec<_>>(),
            ["", "ours", "1.50", "1.50 to 3.00", "1.50", ""]
        );
    }

    #[test]
    fn the_place_is_among_the_servers_that_were_measured() {
        let broken = Measured { name: "pmcp", samples: Err("no answer".to_owned()) };
        let servers = [measured(FLOOR, &[1.0]), measured(OURS, &[3.0]), measured("rmcp", &[2.0]), broken];
        let (text, standing) = table(&ROW, &servers);
        assert_eq!(standing, Some(Standing { place: 2, of: 2, ratio: Some(3.0) }));
        assert!(text.contains("no answer"), "{text}");
    }

    #[test]
    fn who_lets_go_of_what_was_opened_has_no_place() {
        let row = Row { name: "held", title: "Held", kind: Kind::Hold("sessions", Need::Sessions, 10) };
        let held = |name, bytes: f64, alive: f64| {
            let figures =
                [("opened", 10.0), ("alive", alive), ("proportional_bytes", bytes), ("resident_bytes", bytes)];
            let sample = figures.map(|(name, figure)| (name.to_owned(), figure));
            Measured { name, samples: Ok(vec![Sample::from(sample)]) }
        };
        let servers = [held(OURS, 2_000.0, 10.0), held("forgetful", 1_000.0, 9.0), held("larger", 3_000.0, 10.0)];
        let (text, standing) = table(&row, &servers);
        assert_eq!(standing, Some(Standing { place: 1, of: 2, ratio: None }));
        assert!(text.contains("9 of 10"), "{text}");
    }

    #[test]
    fn columns_stand_under_each_other() {
        let text = markdown(&["server", "ms"], &[vec!["ours".to_owned(), "12".to_owned()]]);
        assert_eq!(text, "| server |   ms |\n| ------ | ---: |\n| ours   |   12 |\n");
    }
}
