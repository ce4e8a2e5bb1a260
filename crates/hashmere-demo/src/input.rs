//! The input: real text files that Debian machines have, cut into chunks.

use crate::failure::Failure;
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where to look, in this order, until there is enough.
const FOLDERS: [&str; 6] = [
    "/usr/share/common-licenses",
    "/usr/share/doc",
    "/usr/share/perl",
    "/usr/share/perl5",
    "/usr/lib/python3",
    "/usr/lib",
];
/// Below these names of /usr/lib only.
const LIBRARIES: &str = "python3";
const EXTENSIONS: [&str; 10] = ["txt", "md", "rst", "pod", "pm", "pl", "py", "html", "tex", "text"];
const NAMES: [&str; 7] = ["copyright", "README", "NEWS", "changelog", "AUTHORS", "FAQ", "TODO"];

/// A part of a file that begins and ends between two lines, and so between two words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The file.
    pub path: PathBuf,
    /// Where the part begins.
    pub offset: u64,
    /// How long it is.
    pub len: u64,
}

impl Piece {
    /// Reads the part.
    pub fn read(&self) -> Result<Vec<u8>, Failure> {
        let read = || {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.offset))?;
            let mut bytes = vec![0; self.len as usize];
            file.read_exact(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|e: std::io::Error| Failure::io(format!("read {}", self.path.display()), &e))
    }
}

/// Finds text files with at most `limit` bytes together. `folders`: look there instead, and take every file.
pub fn find_files(folders: &[PathBuf], limit: u64) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Found { files: Vec::new(), seen: HashSet::new(), left: limit };
    if folders.is_empty() {
        for folder in FOLDERS {
            found.folder(Path::new(folder), 0, &is_text);
        }
    }
    for folder in folders {
        found.folder(folder, 0, &|_| true);
    }
    if found.files.is_empty() {
        return Err(Failure::new("no text files found to count; name a folder with --input DIR"));
    }
    Ok(found.files)
}

struct Found {
    files: Vec<PathBuf>,
    /// Device and inode: a file with several names is counted once.
    seen: HashSet<(u64, u64)>,
    left: u64,
}

impl Found {
    fn folder(&mut self, folder: &Path, depth: u32, wanted: &dyn Fn(&Path) -> bool) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            // What the store keeps is text, so a file whose name is none is left out.
            let Some(text) = path.to_str().filter(|text| !text.contains(['\t', '\n'])) else { continue };
            let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
            let library = folder != Path::new("/usr/lib") || text["/usr/lib/".len()..].starts_with(LIBRARIES);
            if meta.is_dir() && depth < 12 && library {
                self.folder(&path, depth + 1, wanted);
                continue;
            }
            let fits = meta.is_file() && meta.len() > 0 && meta.len() <= self.left && wanted(&path);
            if fits && self.seen.insert((meta.dev(), meta.ino())) && File::open(&path).is_ok() {
                self.left -= meta.len();
                self.files.push(path);
            }
        }
    }
}

fn is_text(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = path.extension().and_then(|e| e.to_str());
    path.starts_with("/usr/share/common-licenses")
        || extension.map_or(NAMES.contains(&name), |e| EXTENSIONS.contains(&e))
}

/// Cuts the files into pieces of about `target` bytes, at line ends.
pub fn cut(files: &[PathBuf], target: u64) -> Result<Vec<Piece>, Failure> {
    let mut pieces = Vec::new();
    for path in files {
        let cuts = cuts_of(path, target).map_err(|e| Failure::io(format!("read {}", path.display()), &e))?;
        for ends in cuts.windows(2) {
            pieces.push(Piece { path: path.clone(), offset: ends[0], len: ends[1] - ends[0] });
        }
    }
    Ok(pieces)
}

/// Where to cut a file: 0, places behind line ends, and its length.
fn cuts_of(path: &Path, target: u64) -> std::io::Result<Vec<u64>> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut cuts = vec![0];
    let mut at = target;
    let mut block = [0; 4096];
    while at < len {
        file.seek(SeekFrom::Start(at))?;
        let read = file.read(&mut block)?;
        if read == 0 {
            break;
        }
        match block[..read].iter().position(|b| *b == b'\n') {
            Some(line_end) => {
                let cut = at + line_end as u64 + 1;
                if cut < len {
                    cuts.push(cut);
                }
                at = cut + target;
            }
            None => at += read as u64,
        }
    }
    cuts.push(len);
    Ok(cuts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_behind_line_ends_and_lose_nothing() {
        let folder = std::env::temp_dir().join(format!("hashmere-cut-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("text");
        let mut text = String::new();
        for i in 0..3000 {
            text.push_str(&"word ".repeat(i % 9));
            text.push('\n');
        }
        text.push_str(&"x".repeat(9000));
        std::fs::write(&path, &text).unwrap();
        let pieces = cut(&find_files(std::slice::from_ref(&folder), 1 << 20).unwrap(), 1000).unwrap();
        assert!(pieces.len() > 30);
        let mut joined = Vec::new();
        for piece in &pieces {
            assert!(joined.is_empty() || joined.ends_with(b"\n"));
            joined.extend(piece.read().unwrap());
        }
        assert_eq!(joined, text.as_bytes());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
