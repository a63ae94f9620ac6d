//! Lists the files that have grown long.
//!
//! Why here: length alone breaks no rule, but a reader should hear of it.
//! Invariants: notes only; tests in the file count, as they are read with it.

use super::Finding;
use super::tree::Tree;

const LONG: usize = 600;

pub(super) fn notes(tree: &Tree) -> Vec<Finding> {
    let lengths = tree.rust().map(|file| (file, file.text.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > LONG);
    long.map(|(file, lines)| file.finding(lines, format!("{lines} lines; around 400 read well"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_beyond_the_length_are_listed() {
        let (fits, long) = ("\n".repeat(LONG), "\n".repeat(LONG + 1));
        let tree = Tree::of(&[("a.rs", &fits), ("b.rs", &long), ("c.md", &long)], "");
        let files: Vec<String> = notes(&tree).into_iter().map(|finding| finding.file).collect();
        assert_eq!(files, ["b.rs"]);
    }
}
