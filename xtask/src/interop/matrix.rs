//! What each client found, step by step, and whether that is what it should find.
//!
//! Why here: a client reports what it did; which steps there are and what excuses a failure is decided in one place.
//! Invariants: each step has one mark in each column, and a mark other than `ok` has a reason or is a failure.

use std::fmt;

use super::conversation::Said;
use super::limits::{LIMITS, Limit};

/// What every client has to do, in this order.
pub(super) const STEPS: [&str; 21] = [
    "lists",
    "pages",
    "call",
    "structured",
    "progress",
    "errors",
    "resources",
    "templates",
    "prompts",
    "completion",
    "elicitation",
    "sampling_and_roots",
    "side_by_side",
    "let_go",
    "cancellation",
    "time_limit",
    "list_changes",
    "resource_updates",
    "tasks",
    "restart",
    "skills",
];

/// The marks of one client.
pub(super) struct Matrix {
    client: &'static str,
    columns: Vec<(String, Vec<Mark>)>,
    pub(super) failures: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Well,
    Failed,
    /// With the word of the columns that this is about, if not all, and the reason.
    NotApplicable(&'static str, &'static str),
}

/// What a client says of a step.
#[derive(Debug, PartialEq, Eq)]
enum Outcome<'a> {
    Well,
    Failed(&'a str),
}

impl Matrix {
    pub(super) fn new(client: &'static str) -> Self {
        Self { client, columns: Vec::new(), failures: Vec::new() }
    }

    pub(super) fn add(&mut self, column: &str, said: &Said) {
        let reports: Vec<(&str, Outcome<'_>)> = said.lines.iter().filter_map(|line| report(line)).collect();
        for (step, _) in reports.iter().filter(|(step, _)| !STEPS.contains(step)) {
            self.failures.push(format!("{column}: {step}: it is not among the steps"));
        }
        let mut marks = Vec::new();
        for step in STEPS {
            let outcome = reports.iter().find(|(name, _)| *name == step).map(|(_, outcome)| outcome);
            let limit = LIMITS.iter().find(|limit| limit.step == step && limit.covers(self.client, column));
            let (mark, problem) = judge(outcome, limit);
            marks.push(mark);
            self.failures.extend(problem.map(|problem| format!("{} {column}: {step}: {problem}", self.client)));
        }
        // A client that fell over between its steps has proved nothing.
        let reported_failure = reports.iter().any(|(_, outcome)| *outcome != Outcome::Well);
        if !said.ended_well && !reported_failure {
            let last = said.lines.last().map_or("nothing", String::as_str);
            self.failures
                .push(format!("{} {column}: the client did not get through; its last line: {last}", self.client));
        }
        self.columns.push((column.to_owned(), marks));
    }

    /// The steps by the columns, and the reasons for what is not applicable.
    pub(super) fn table(&self) -> String {
        let mut table = format!("\n{:20}", self.client);
        let mut reasons: Vec<String> = Vec::new();
        self.columns.iter().for_each(|(column, _)| table.push_str(&format!("  {column}")));
        table.push('\n');
        for (row, step) in STEPS.iter().enumerate() {
            table.push_str(&format!("{step:20}"));
            for (column, marks) in &self.columns {
                let mark = match marks[row] {
                    Mark::Well => "ok",
                    Mark::Failed => "FAILED",
                    Mark::NotApplicable(word, reason) => {
                        let words = if word.is_empty() { (*step).to_owned() } else { format!("{step} ({word})") };
                        let line = format!("n/a {words}: {reason}\n");
                        if !reasons.contains(&line) {
                            reasons.push(line);
                        }
                        "n/a"
                    }
                };
                table.push_str(&format!("  {mark:width$}", width = column.len()));
            }
            table.push('\n');
        }
        table + &reasons.concat()
    }
}

/// The marks of all clients together, in one line.
#[derive(Default)]
pub(super) struct Sum {
    clients: usize,
    columns: usize,
    well: usize,
    failed: usize,
    not_applicable: usize,
}

impl Sum {
    pub(super) fn add(&mut self, matrix: &Matrix) {
        self.clients += 1;
        self.columns += matrix.columns.len();
        for mark in matrix.columns.iter().flat_map(|(_, marks)| marks) {
            match mark {
                Mark::Well => self.well += 1,
                Mark::Failed => self.failed += 1,
                Mark::NotApplicable(..) => self.not_applicable += 1,
            }
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, columns, well, failed, not_applicable } = self;
        write!(
            formatter,
            "interop: {clients} clients in {columns} columns: {well} steps ok, {failed} failed, {not_applicable} not \
             applicable"
        )
    }
}

/// A line `step<TAB>ok` or `step<TAB>FAILED<TAB>why`; a client may print others.
fn report(line: &str) -> Option<(&str, Outcome<'_>)> {
    let (step, outcome) = line.split_once('\t')?;
    match outcome.split_once('\t') {
        None if outcome == "ok" => Some((step, Outcome::Well)),
        Some(("FAILED", why)) => Some((step, Outcome::Failed(why))),
        _ => None,
    }
}

/// The mark of a step, and what is wrong with it.
fn judge(outcome: Option<&Outcome<'_>>, limit: Option<&Limit>) -> (Mark, Option<String>) {
    let failed = |problem: &str| (Mark::Failed, Some(problem.to_owned()));
    match (outcome, limit.map(|limit| (limit.shows, Mark::NotApplicable(limit.column, limit.reason)))) {
        (Some(Outcome::Well), None) => (Mark::Well, None),
        (Some(Outcome::Failed(why)), Some((Some(shown), mark))) if why.contains(shown) => (mark, None),
        (None, Some((None, mark))) => (mark, None),
        (Some(Outcome::Failed(why)), _) => failed(why),
        (Some(Outcome::Well), Some(_)) => failed("it works, against what the table of limits says"),
        (None, _) => failed("the client did not try it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[&str], ended_well: bool) -> Said {
        Said { lines: lines.iter().map(|&line| line.to_owned()).collect(), ended_well }
    }

    /// Whether this client's script has such a step.
    fn is_tried(step: &str) -> bool {
        !LIMITS.iter().any(|limit| limit.step == step && limit.covers("python", "http") && limit.shows.is_none())
    }

    /// All steps, of which one says something else.
    fn all_but(step: &str, instead: &str) -> Said {
        let lines = STEPS.iter().filter(|step| is_tried(step));
        let lines = lines.map(|&name| if name == step { instead.to_owned() } else { format!("{name}\tok") });
        Said { lines: lines.collect(), ended_well: !instead.contains("FAILED") }
    }

    #[test]
    fn every_step_has_a_mark_in_every_column() {
        let mut matrix = Matrix::new("python");
        matrix.add("http", &all_but("", ""));
        assert!(matrix.failures.is_empty(), "{:?}", matrix.failures);
        matrix.add("stdio", &all_but("call", "call\tFAILED\tAssertionError: no"));
        assert_eq!(matrix.failures, ["python stdio: call: AssertionError: no"]);
        let table = matrix.table();
        let lines: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["python", "http", "stdio"]);
        assert_eq!(lines[3], ["call", "ok", "FAILED"]);
        assert_eq!(lines[STEPS.len()], ["skills", "n/a", "n/a"]);
        assert!(table.contains("n/a skills: an extension"));
        let mut sum = Sum::default();
        sum.add(&matrix);
        let (tried, columns) = (STEPS.iter().filter(|step| is_tried(step)).count(), 2);
        let (well, rest) = (columns * tried - 1, columns * (STEPS.len() - tried));
        let said = format!("interop: 1 clients in 2 columns: {well} steps ok, 1 failed, {rest} not applicable");
        assert_eq!(sum.to_string(), said);
    }

    #[test]
    fn a_client_that_falls_over_is_a_failure() {
        let mut matrix = Matrix::new("python");
        matrix.add("http", &said(&["Traceback", "ImportError: no mcp"], false));
        let tried = STEPS.iter().filter(|step| is_tried(step)).count();
        assert_eq!(matrix.failures.len(), tried + 1, "every step that there is, and the end");
        assert!(matrix.failures.last().unwrap().ends_with("ImportError: no mcp"));
        let mut matrix = Matrix::new("python");
        matrix.add("http", &Said { ended_well: false, ..all_but("", "") });
        assert_eq!(matrix.failures.len(), 1);
    }

    #[test]
    fn a_step_that_was_left_out_is_a_failure() {
        let mut matrix = Matrix::new("python");
        matrix.add("http", &all_but("restart", "something else"));
        assert_eq!(matrix.failures, ["python http: restart: the client did not try it"]);
    }

    #[test]
    fn a_limit_excuses_the_failure_that_it_names_and_nothing_else() {
        let limit = |shows| Limit { client: "c", column: "", step: "call", shows, reason: "so it is" };
        let excused = (Mark::NotApplicable("", "so it is"), None);
        let failing = limit(Some("no such flag"));
        assert_eq!(judge(Some(&Outcome::Failed("there is no such flag")), Some(&failing)), excused);
        assert_eq!(judge(Some(&Outcome::Failed("it crashed")), Some(&failing)).0, Mark::Failed);
        assert_eq!(judge(Some(&Outcome::Well), Some(&failing)).0, Mark::Failed);
        assert_eq!(judge(None, Some(&failing)).0, Mark::Failed);
        assert_eq!(judge(None, Some(&limit(None))), excused);
        assert_eq!(judge(Some(&Outcome::Well), Some(&limit(None))).0, Mark::Failed);
    }

    #[test]
    fn a_limit_is_of_one_client_and_of_columns_with_its_word() {
        let limit = Limit { client: "c", column: "legacy", step: "call", shows: None, reason: "so it is" };
        assert!(limit.covers("c", "http legacy"));
        assert!(!limit.covers("c", "http auto"));
        assert!(!limit.covers("d", "http legacy"));
        assert!(LIMITS.iter().all(|limit| STEPS.contains(&limit.step)));
    }
}
