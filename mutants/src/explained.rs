//! The list of survivors that are known, with the reason.
//!
//! A line that begins with `#` is a reason; it holds for the lines below it, up to the next reason. Every other line
//! is a mutant's key, tabs and all, or only the beginning of it, ending with `*`: a file, or a file and a function.

use std::collections::BTreeSet;

/// The list.
pub struct Explained<'t> {
    lines: Vec<&'t str>,
}

impl<'t> Explained<'t> {
    pub fn read(text: &'t str) -> Self {
        Self { lines: text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect() }
    }

    fn line_for(&self, key: &str) -> Option<&'t str> {
        self.lines.iter().copied().find(|line| match line.strip_suffix('*') {
            Some(beginning) => key.starts_with(beginning),
            None => key == *line,
        })
    }

    /// Survivors that no line explains, and lines that explain no survivor.
    pub fn against<'k>(&self, survivors: &[&'k str]) -> (Vec<&'k str>, Vec<&'t str>) {
        let used: BTreeSet<&str> = survivors.iter().filter_map(|key| self.line_for(key)).collect();
        let new = survivors.iter().copied().filter(|key| self.line_for(key).is_none()).collect();
        (new, self.lines.iter().copied().filter(|line| !used.contains(line)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Explained;
    use std::path::Path;

    /// Takes no compilation, so a line that a change of the code has left behind is found at once.
    #[test]
    fn every_line_of_the_list_is_of_a_change_that_can_be_made() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = std::fs::read_to_string(repository.join("mutants/explained.tsv")).unwrap();
        let (_, mutants) = crate::mutant::all(repository, &crate::FOLDERS).unwrap();
        let keys: Vec<&str> = mutants.iter().map(|mutant| mutant.key.as_str()).collect();
        let (_, stale) = Explained::read(&text).against(&keys);
        assert_eq!(stale, [""; 0]);
    }

    #[test]
    fn survivors_without_a_line_and_lines_without_a_survivor_are_told() {
        let list = Explained::read("# words\n\na.rs\tf\t1\t2\t1\nb.rs\tg\t*\nc.rs\t*\n");
        let survivors = ["a.rs\tf\t1\t2\t1", "a.rs\tf\t1\t2\t2", "b.rs\tg\t3\t4\t1", "b.rs\tgg\t3\t4\t1"];
        let (new, stale) = list.against(&survivors);
        assert_eq!(new, ["a.rs\tf\t1\t2\t2", "b.rs\tgg\t3\t4\t1"]);
        assert_eq!(stale, ["c.rs\t*"]);
    }
}
