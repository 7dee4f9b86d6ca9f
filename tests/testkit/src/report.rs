//! The findings of a test or a workload, in the form that `cargo xtask show` collects.

/// Result lines of one test or workload.
pub struct Report {
    topic: &'static str,
    lines: Vec<(String, bool)>,
}

impl Report {
    /// An empty report for a topic of `cargo xtask show`.
    pub fn new(topic: &'static str) -> Self {
        Self { topic, lines: Vec::new() }
    }

    /// Adds a line: the figure, its goal, and whether it is met.
    pub fn add(&mut self, item: &str, figure: impl std::fmt::Display, goal: &str, ok: bool) -> &mut Self {
        let verdict = if ok { "ok" } else { "short" };
        self.lines.push((format!("show {} {item} {figure} (goal {goal}) {verdict}", self.topic), ok));
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
