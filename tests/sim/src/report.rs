//! What a test found, in the form that `cargo xtask show` collects.

/// Result lines of one test.
#[derive(Default)]
pub struct Report {
    lines: Vec<(String, bool)>,
}

impl Report {
    /// An empty report.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line: what was measured, what it should be, and whether it is.
    pub fn add(&mut self, item: &str, figure: impl std::fmt::Display, goal: &str, ok: bool) -> &mut Self {
        let verdict = if ok { "ok" } else { "short" };
        self.lines.push((format!("show cells {item} {figure} (goal {goal}) {verdict}"), ok));
        self
    }

    /// Prints the lines; true if all are ok.
    pub fn print(&self) -> bool {
        for (line, _) in &self.lines {
            println!("{line}");
        }
        !self.lines.is_empty() && self.lines.iter().all(|(_, ok)| *ok)
    }
}
