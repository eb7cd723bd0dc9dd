//! `cargo xtask sample-comments`: samples comments, each with the code after it, for a readability review.

use std::fs;
use std::path::{Path, PathBuf};

/// The default folders, those of the back end.
const BACK_END: &[&str] = &[
    "compiler/build",
    "compiler/cpu",
    "compiler/cuda",
    "compiler/lower",
    "compiler/prim_func",
    "compiler/runtime",
    "compiler/loops",
    "compiler/tir",
    "compiler/transform",
];

/// Options of `sample-comments`.
#[derive(clap::Args)]
pub struct Options {
    /// The seed of the random choice: equal seeds choose equal comments
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The number of comments
    #[arg(long, default_value_t = 60)]
    count: usize,
    /// The number of lines of code to print after each comment
    #[arg(long, default_value_t = 10)]
    lines: usize,
    /// The folders to choose from, instead of the crates of the back end
    folders: Vec<PathBuf>,
}

/// A block of consecutive comment lines.
struct Comment {
    file: PathBuf,
    /// The first line, from 0, and the line after the last.
    lines: (usize, usize),
}

/// Draws comments according to the options; returns them as text.
///
/// # Errors
/// If a folder cannot be read.
pub fn sample(root: &Path, options: &Options) -> Result<String, String> {
    let folders = match options.folders.is_empty() {
        true => BACK_END.iter().map(|folder| root.join(folder)).collect(),
        false => options.folders.clone(),
    };
    let mut files = Vec::new();
    folders.iter().try_for_each(|folder| rust_files(folder, &mut files))?;
    files.sort();
    let mut comments: Vec<Comment> = files.iter().flat_map(|file| comments(file)).collect();
    let mut random = Random(options.seed);
    let mut text = String::new();
    for number in 1..=options.count.min(comments.len()) {
        let Comment { file, lines: (start, end) } = comments.swap_remove(random.below(comments.len()));
        let source = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let shown = file.strip_prefix(root).unwrap_or(&file).display();
        text.push_str(&format!("## {number}. {shown}:{}\n\n", start + 1));
        for line in source.lines().skip(start).take(end - start + options.lines) {
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
    }
    Ok(text)
}

/// Adds the `.rs` files under a folder.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let error = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the comments of a file that fill whole lines.
fn comments(file: &Path) -> Vec<Comment> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    let mut found = Vec::new();
    let mut start = None;
    for (at, line) in text.lines().chain([""]).enumerate() {
        let is_comment = line.trim_start().starts_with("//");
        match start {
            None if is_comment => start = Some(at),
            Some(first) if !is_comment => {
                found.push(Comment { file: file.to_owned(), lines: (first, at) });
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// The generator SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Random(u64);

impl Random {
    /// Returns a number below `limit`, which must not be 0.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}
