//! Reading of text files.

use rx_base::{Code, Diagnostic, Span};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// The longest text in bytes: positions have 32 bits.
const LONGEST: u64 = u32::MAX as u64;

/// The source of a text.
#[derive(Clone, Debug)]
pub enum Place {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

/// A text that was read.
pub struct Loaded {
    /// The text. Bytes that are not UTF-8 are replaced by `U+FFFD`.
    pub text: String,
    /// The diagnostic for a wrong encoding.
    pub mistake: Option<Diagnostic<Span>>,
}

/// Reads the text at `place`.
///
/// # Errors
/// Errors of the system, and a text longer than 4 GiB.
pub fn load(place: &Place) -> io::Result<Loaded> {
    let bytes = match place {
        Place::Stdin => read(io::stdin().lock(), 0)?,
        Place::File(path) => {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            read(file, length)?
        }
    };
    Ok(decode(bytes))
}

/// Reads to the end; `expected` is the likely number of bytes.
fn read(from: impl Read, expected: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, "longer than 4 GiB, which rx does not read");
    let mut bytes = Vec::new();
    if expected > LONGEST {
        return Err(too_large());
    }
    bytes.try_reserve(usize::try_from(expected).unwrap_or(0))?;
    from.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(too_large());
    }
    Ok(bytes)
}

fn decode(bytes: Vec<u8>) -> Loaded {
    match String::from_utf8(bytes) {
        Ok(text) => Loaded { text, mistake: None },
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let mistake = invalid(error.as_bytes(), at);
            Loaded { text: String::from_utf8_lossy(error.as_bytes()).into_owned(), mistake: Some(mistake) }
        }
    }
}

/// Creates the diagnostic for the invalid byte at `at`. The offset is the same in the repaired text, because everything
/// before it is valid.
fn invalid(bytes: &[u8], at: usize) -> Diagnostic<Span> {
    let byte = bytes.get(at).copied().unwrap_or_default();
    let place = Span::new(at as u32, (at + '\u{FFFD}'.len_utf8()) as u32);
    let help = if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        "the file looks like UTF-16; save it as UTF-8"
    } else {
        "save the file as UTF-8"
    };
    Diagnostic::new(Code::InvalidEncoding, place, format!("the file is not UTF-8: byte 0x{byte:02X} at offset {at}"))
        .with_primary_label("no valid character")
        .with_help(help)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn first_invalid_byte_is_reported_at_its_place() {
        assert!(decode("漢\n".into()).mistake.is_none());
        let loaded = decode(b"x = 1\n\xE6\xBC y".to_vec());
        let mistake = loaded.mistake.expect("a mistake");
        assert_eq!(mistake.message, "the file is not UTF-8: byte 0xE6 at offset 6");
        assert_eq!(loaded.text.get(mistake.primary.range()), Some("\u{FFFD}"));
    }

    #[test]
    fn utf_16_is_recognised() {
        let mistake = decode(b"\xFF\xFEx\0".to_vec()).mistake.expect("a mistake");
        assert_eq!(mistake.help, ["the file looks like UTF-16; save it as UTF-8"]);
    }
}
