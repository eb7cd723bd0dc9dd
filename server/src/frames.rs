//! Frames of the base protocol: a `Content-Length: N` header, a blank line, `N` bytes of JSON.
//!
//! tower-lsp's codec ends the session at the first byte that it cannot decode. This one returns undecodable input as a
//! message like any other. The server responds with an error and continues at the next frame.

use serde_json::Value;
use std::io::{self, BufRead, ErrorKind, Read};
use tower_lsp::jsonrpc::{Error, Id, Request, Response};

/// The maximal length of a message in bytes; longer messages are skipped.
pub const MAX_MESSAGE: u64 = 1 << 30;

/// The number of bytes of a header line that are kept; the rest is ignored.
const MAX_HEADER: usize = 4096;

/// One decoded message.
#[derive(Debug)]
pub enum Incoming {
    /// A request or notification.
    Request(Request),
    /// A response to a request of the server.
    Response(Response),
    /// Input that is no message, with the error response to send.
    Unreadable(Response),
}

/// A reader that splits its input into frames and decodes them.
pub struct FrameReader<R> {
    input: R,
    line: Vec<u8>,
    /// Whether an error was already reported for the current run of bytes outside any frame.
    lost: bool,
}

impl<R: BufRead> FrameReader<R> {
    /// Creates a reader of `input`.
    pub fn new(input: R) -> FrameReader<R> {
        FrameReader { input, line: Vec::new(), lost: false }
    }

    /// Reads the next message. `None` at the end of the input.
    pub fn read(&mut self) -> io::Result<Option<Incoming>> {
        let mut length = None;
        loop {
            if !self.read_line()? {
                return Ok(None);
            }
            match (header(&self.line), length) {
                (Header::ContentLength(bytes), _) => length = Some(bytes),
                (Header::End, Some(bytes)) => {
                    self.lost = false;
                    return self.body(bytes);
                }
                (Header::Other, Some(_)) | (Header::End, None) => {}
                (Header::Other, None) if is_field(&self.line) => {}
                (Header::Other, None) => {
                    if !std::mem::replace(&mut self.lost, true) {
                        return Ok(Some(unreadable(Id::Null, Error::parse_error())));
                    }
                }
            }
        }
    }

    /// Reads a line into `self.line`, of which it keeps only the first [`MAX_HEADER`] bytes. Returns `false` at the end
    /// of the input.
    fn read_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        loop {
            let available = match self.input.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                return Ok(!self.line.is_empty());
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(available.len(), |end| end + 1);
            let kept = used.min(MAX_HEADER.saturating_sub(self.line.len()));
            // INVARIANT: kept ≤ used ≤ available.len().
            self.line.extend_from_slice(&available[..kept]);
            self.input.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn body(&mut self, length: u64) -> io::Result<Option<Incoming>> {
        if length > MAX_MESSAGE {
            return self.skip(length);
        }
        // Memory grows as bytes arrive, because the length in the header may be wrong.
        let mut body = Vec::with_capacity(length.min(1 << 20) as usize);
        self.input.by_ref().take(length).read_to_end(&mut body)?;
        if (body.len() as u64) < length {
            return Ok(None);
        }
        Ok(Some(message(&body)))
    }

    fn skip(&mut self, length: u64) -> io::Result<Option<Incoming>> {
        let mut left = length;
        while left > 0 {
            let available = match self.input.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                available => available?.len(),
            };
            if available == 0 {
                return Ok(None);
            }
            let used = left.min(available as u64);
            // The conversion is lossless: `used` is at most `available`.
            self.input.consume(used as usize);
            left -= used;
        }
        Ok(Some(unreadable(Id::Null, Error::invalid_request())))
    }
}

enum Header {
    ContentLength(u64),
    /// The blank line that ends the headers.
    End,
    Other,
}

/// Parses a header line. The field may follow other bytes on the line. For example, if the previous frame's body is
/// longer than its `Content-Length`, the rest of that body precedes the next header.
fn header(line: &[u8]) -> Header {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Header::End;
    }
    const FIELD: &[u8] = b"content-length:";
    let field = line.windows(FIELD.len()).rposition(|window| window.eq_ignore_ascii_case(FIELD));
    let value = field.and_then(|at| line.get(at + FIELD.len()..));
    let value = value.and_then(|value| std::str::from_utf8(value.trim_ascii()).ok());
    match value.and_then(|value| value.parse().ok()) {
        Some(bytes) => Header::ContentLength(bytes),
        None => Header::Other,
    }
}

/// Whether a line has the form of a header field with another name, which is ignored without an error.
fn is_field(line: &[u8]) -> bool {
    let name: Vec<u8> = line.iter().copied().take_while(|byte| *byte != b':').collect();
    let is_name = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    is_name && name.len() < line.len() && !name.eq_ignore_ascii_case(b"content-length")
}

/// Decodes the body of a frame.
fn message(body: &[u8]) -> Incoming {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return unreadable(Id::Null, Error::parse_error());
    };
    if value.get("method").is_none() {
        return match serde_json::from_value(value) {
            Ok(response) => Incoming::Response(response),
            Err(_) => unreadable(Id::Null, Error::invalid_request()),
        };
    }
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    match serde_json::from_value(value) {
        Ok(request) => Incoming::Request(request),
        Err(_) => unreadable(id.unwrap_or(Id::Null), Error::invalid_request()),
    }
}

fn unreadable(id: Id, error: Error) -> Incoming {
    Incoming::Unreadable(Response::from_error(id, error))
}

/// Encodes a message as a frame.
pub fn frame(message: &impl serde::Serialize) -> serde_json::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(&body);
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::{FrameReader, Incoming};
    use std::io::{self, BufRead, BufReader, ErrorKind, Read};
    use tower_lsp::jsonrpc::ErrorCode;

    /// Decodes `input`. Returns one string per message: the method of a request, `answer` for a response, or the error
    /// that is sent back.
    fn read(input: impl BufRead) -> Vec<String> {
        let mut frames = FrameReader::new(input);
        let mut seen = Vec::new();
        while let Ok(Some(message)) = frames.read() {
            seen.push(match message {
                Incoming::Request(request) => request.method().to_owned(),
                Incoming::Response(_) => "answer".to_owned(),
                Incoming::Unreadable(response) => match response.error().map(|error| error.code) {
                    Some(ErrorCode::ParseError) => "parse error".to_owned(),
                    code => format!("{code:?}"),
                },
            });
        }
        seen
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    const EXIT: &str = r#"{"jsonrpc":"2.0","method":"exit"}"#;

    #[test]
    fn headers_in_any_case_and_company_are_read() {
        let input = format!("content-type: x\r\ncontent-LENGTH:{}\nX-Other: 1\n\n{EXIT}", EXIT.len());
        assert_eq!(read(input.as_bytes()), ["exit"]);
        assert_eq!(read(framed(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).as_bytes()), ["answer"]);
    }

    #[test]
    fn reading_continues_after_invalid_bytes() {
        let exit = framed(EXIT);
        assert_eq!(read(format!("rubbish\nmore rubbish\n{exit}").as_bytes()), ["parse error", "exit"]);
        assert_eq!(read(format!("{}{exit}", framed("{]")).as_bytes()), ["parse error", "exit"]);
        assert_eq!(read(format!("Content-Length: -1\r\n\r\n{exit}").as_bytes()), ["parse error", "exit"]);
        let not_utf8 = [b"Content-Length: 3\r\n\r\n\"\xff\"".as_slice(), exit.as_bytes()].concat();
        assert_eq!(read(not_utf8.as_slice()), ["parse error", "exit"]);
    }

    #[test]
    fn frame_longer_than_its_length_spoils_only_itself() {
        let input = format!("Content-Length: 2\r\n\r\n{{\"a\":1}}{}", framed(EXIT));
        assert_eq!(read(input.as_bytes()), ["parse error", "exit"]);
    }

    #[test]
    fn json_that_is_no_message_is_refused() {
        for body in
            ["[]", "1", "null", r#"{"jsonrpc":"1.0","method":"exit"}"#, r#"{"jsonrpc":"2.0","method":7,"id":1}"#]
        {
            assert_eq!(read(framed(body).as_bytes()), ["Some(InvalidRequest)"], "{body}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(read(framed(&deep).as_bytes()), ["parse error"]);
    }

    #[test]
    fn input_may_end_anywhere() {
        let whole = framed(EXIT);
        for end in 0..whole.len() {
            let seen = read(&whole.as_bytes()[..end]);
            assert!(seen.iter().all(|it| it == "parse error"), "{end}: {seen:?}");
        }
    }

    /// An input that returns one byte at a time, and an error before each: a signal interrupted the read.
    struct Interrupted<'a> {
        bytes: &'a [u8],
        interrupt: bool,
    }

    impl Read for Interrupted<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.interrupt = !self.interrupt;
            if self.interrupt {
                return Err(ErrorKind::Interrupted.into());
            }
            let length = into.len().min(1);
            self.bytes.read(&mut into[..length])
        }
    }

    fn interrupted(bytes: &[u8]) -> BufReader<Interrupted<'_>> {
        BufReader::new(Interrupted { bytes, interrupt: false })
    }

    #[test]
    fn interrupted_read_is_repeated() {
        assert_eq!(read(interrupted(framed(EXIT).as_bytes())), ["exit"]);
        let too_long = format!("Content-Length: {}\r\n\r\n{{", super::MAX_MESSAGE + 1);
        let mut frames = FrameReader::new(interrupted(too_long.as_bytes()));
        assert!(matches!(frames.read(), Ok(None)));
    }
}
