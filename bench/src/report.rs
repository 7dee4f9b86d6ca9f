//! What was measured, in the form that `cargo xtask show` collects.

/// Result lines of one workload.
#[derive(Default)]
pub struct Report {
    lines: Vec<(String, bool)>,
}

impl Report {
    /// Adds a line: what was measured, what it should be, and whether it is.
    pub fn add(&mut self, item: &str, figure: impl std::fmt::Display, goal: &str, ok: bool) {
        let verdict = if ok { "ok" } else { "short" };
        self.lines.push((format!("show cells {item} {figure} (goal {goal}) {verdict}"), ok));
    }

    /// Prints the lines; true if all are ok.
    pub fn print(&self) -> bool {
        for (line, _) in &self.lines {
            println!("{line}");
        }
        self.lines.iter().all(|(_, ok)| *ok)
    }
}
