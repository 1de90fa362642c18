//! Markdown documents whose examples are run: each block of commands, and the block of output that follows it.

use std::path::PathBuf;

/// A document of this repository, in memory.
pub struct Document {
    path: PathBuf,
    lines: Vec<String>,
}

/// A fenced block, with where it is in the document.
struct Fence {
    info: String,
    /// The lines between the fences.
    start: usize,
    end: usize,
}

/// A block of commands, and the output that the document shows for it.
pub struct Example {
    /// What follows the opening fence: `sql`, `sh`; or `signature join_member`, of a comment that says so.
    pub info: String,
    pub commands: String,
    /// Of the first line of the commands, counted from 1.
    pub line: usize,
    fence_end: usize,
    shown: Option<(usize, usize)>,
}

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Whether documents are to be rewritten with what really comes out.
fn adopting() -> bool {
    std::env::var_os("LEASEHOLD_ADOPT").is_some_and(|value| value == "1")
}

impl Document {
    pub fn read(path: &str) -> Self {
        let path = repository(path);
        let text = std::fs::read_to_string(&path).unwrap();
        Self {
            lines: text.lines().map(str::to_owned).collect(),
            path,
        }
    }

    pub fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    /// Every block that is not output, in order.
    pub fn examples(&self) -> Vec<Example> {
        let fences = self.fences();
        let mut examples = Vec::new();
        for (n, fence) in fences.iter().enumerate() {
            if fence.info == "text" {
                continue;
            }
            let shown = fences.get(n + 1).filter(|next| {
                next.info == "text"
                    && self.lines[fence.end + 1..next.start - 1]
                        .iter()
                        .all(|line| line.trim().is_empty())
            });
            examples.push(Example {
                info: fence.info.clone(),
                commands: self.lines[fence.start..fence.end].join("\n"),
                line: fence.start + 1,
                fence_end: fence.end,
                shown: shown.map(|s| (s.start, s.end)),
            });
        }
        examples
    }

    fn fences(&self) -> Vec<Fence> {
        let mut fences = Vec::new();
        let mut open: Option<(String, usize)> = None;
        for (n, line) in self.lines.iter().enumerate() {
            let Some(info) = line.strip_prefix("```") else {
                // What is invisible to a reader has no block of its own.
                if let Some(name) = line.strip_prefix("<!-- signature ") {
                    let name = name.trim_end_matches(" -->");
                    fences.push(Fence {
                        info: format!("signature {name}"),
                        start: n,
                        end: n,
                    });
                }
                continue;
            };
            match open.take() {
                None => open = Some((info.trim().to_owned(), n + 1)),
                Some((info, start)) => fences.push(Fence {
                    info,
                    start,
                    end: n,
                }),
            }
        }
        assert!(
            open.is_none(),
            "{}: a block is not closed",
            self.path.display()
        );
        fences
    }

    /// Fails with every example whose output is not what the document shows, or
    /// writes the outputs into the document where `LEASEHOLD_ADOPT=1`.
    pub fn expect(self, outputs: Vec<(Example, String)>, alike: impl Fn(&str) -> String) {
        let mut differences = Vec::new();
        let mut lines = self.lines.clone();
        // From the end, so that earlier line numbers stay true.
        for (example, output) in outputs.iter().rev() {
            let shown = example
                .shown
                .map(|(start, end)| self.lines[start..end].join("\n"))
                .unwrap_or_default();
            if alike(shown.trim_end()) == alike(output.trim_end()) {
                continue;
            }
            differences.push(format!(
                "{}:{}\n{}\n{}",
                self.path.display(),
                example.line,
                example.commands,
                difference(&alike(shown.trim_end()), &alike(output.trim_end()))
            ));
            let new = output.trim_end().lines().map(str::to_owned);
            match example.shown {
                Some((start, end)) => lines.splice(start..end, new).count(),
                None => {
                    let block = [String::new(), "```text".to_owned()]
                        .into_iter()
                        .chain(new)
                        .chain(["```".to_owned()]);
                    let after = example.fence_end + 1;
                    lines.splice(after..after, block).count()
                }
            };
        }
        self.settle(&lines, differences);
    }

    /// As [`Document::expect`], for what stands between `<!-- name -->` and `<!-- /name -->`.
    pub fn expect_section(self, name: &str, expected: &str) {
        let place = |marker: String| {
            self.lines
                .iter()
                .position(|line| *line == marker)
                .unwrap_or_else(|| unreachable!("{} lacks {marker}", self.path.display()))
        };
        let start = place(format!("<!-- {name} -->")) + 1;
        let end = place(format!("<!-- /{name} -->"));
        let shown = self.lines[start..end].join("\n");
        if shown.trim() == expected.trim() {
            return;
        }
        let mut lines = self.lines.clone();
        let new = std::iter::once("")
            .chain(expected.trim().lines())
            .chain([""])
            .map(str::to_owned);
        lines.splice(start..end, new);
        let differences = vec![difference(shown.trim(), expected.trim())];
        self.settle(&lines, differences);
    }

    /// The lines between `<!-- name -->` and `<!-- /name -->`.
    pub fn section(&self, name: &str) -> String {
        let text = self.text();
        let (_, rest) = text.split_once(&format!("<!-- {name} -->\n")).unwrap();
        let (section, _) = rest.split_once(&format!("<!-- /{name} -->")).unwrap();
        section.to_owned()
    }

    fn settle(&self, lines: &[String], mut differences: Vec<String>) {
        if differences.is_empty() {
            return;
        }
        if adopting() {
            std::fs::write(&self.path, lines.join("\n") + "\n").unwrap();
            return;
        }
        differences.reverse();
        assert!(
            differences.is_empty(),
            "{}\n\nIf this is how it should be: LEASEHOLD_ADOPT=1 cargo test --test it documents -- --test-threads=1, and read the diff.",
            differences.join("\n\n")
        );
    }
}

/// The lines that differ, marked - (in the document) and + (what came out), between those that do not.
fn difference(shown: &str, output: &str) -> String {
    let (shown, output): (Vec<_>, Vec<_>) = (shown.lines().collect(), output.lines().collect());
    let same_start = shown
        .iter()
        .zip(&output)
        .take_while(|(a, b)| a == b)
        .count();
    let same_end = shown[same_start..]
        .iter()
        .rev()
        .zip(output[same_start..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let marked = |mark: &'static str, lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| format!("{mark}{line}")).collect()
    };
    [
        marked("  ", &shown[..same_start]),
        marked("- ", &shown[same_start..shown.len() - same_end]),
        marked("+ ", &output[same_start..output.len() - same_end]),
        marked("  ", &output[output.len() - same_end..]),
    ]
    .concat()
    .join("\n")
}
