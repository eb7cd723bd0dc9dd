//! A mock of `rxrun` for the tests of `rx.run`. It reports its arguments, its input and its working directory over a
//! socket, then behaves as `--behave=` requests. The test sees that the process is gone when the socket is closed.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

fn main() -> Result<(), Box<dyn Error>> {
    rx_base::process::end_with_owner();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name)).map(str::to_owned);
    let behave = option("--behave=").unwrap_or_default();
    let mut text = String::new();
    if behave != "deaf" {
        std::io::stdin().read_to_string(&mut text)?;
    }
    let mut test = None;
    if let Some(port) = option("--port=") {
        let mut socket = TcpStream::connect(("127.0.0.1", port.parse()?))?;
        let folder = std::env::current_dir()?;
        let hello = serde_json::json!({"arguments": arguments, "text": text, "folder": folder.to_string_lossy()});
        writeln!(socket, "{hello}")?;
        test = Some(socket);
    }
    match behave.as_str() {
        "run" => {
            println!(r#"{{"event":"checked","seconds":0.001}}"#);
            println!(r#"{{"event":"building","done":1,"total":4}}"#);
            println!(r#"{{"event":"built","kernels":4,"device":"the CPU","seconds":0.5}}"#);
            println!(r#"{{"event":"running","what":"run","run":1,"done":2,"total":4}}"#);
            println!(r#"{{"event":"ran","seconds":[0.0019]}}"#);
            println!(
                r#"{{"event":"output","name":"out0","dtype":"float32","shape":[1,10],"min":-1,"mean":0,"max":1,"nan":0}}"#
            );
        }
        // A finished run, followed by an extra run that reports its results, waits until the test closes the socket, or
        // crashes.
        "observed" | "observed-hang" | "observed-crash" => {
            println!(r#"{{"event":"ran","seconds":[0.0019]}}"#);
            println!(r#"{{"event":"observing","what":"values"}}"#);
            match behave.as_str() {
                "observed" => {
                    println!(
                        r#"{{"event":"kernel","name":"relu","calls":1,"seconds":0.5,"places":[{{"line":23,"column":9,"end_line":23,"end_column":25}}]}}"#
                    );
                    println!(
                        r#"{{"event":"value","name":"y","function":"other","dtype":"float32","shape":[4],"text":null,"min":0,"mean":0.5,"max":1,"nan":0,"seconds":0.5,"line":23,"column":9,"end_line":23,"end_column":10}}"#
                    );
                }
                "observed-crash" => std::process::abort(),
                _ => drop(test.map(|mut socket| drop(socket.read(&mut [0])))),
            }
        }
        "old" if arguments.iter().any(|argument| argument == "--values") => {
            eprintln!("error: unexpected argument '--values' found\n\nFor more information, try '--help'.");
            std::process::exit(2);
        }
        "old" => println!(r#"{{"event":"ran","seconds":[0.0019]}}"#),
        // Longer than the longest text that the server sends.
        "emit-long" => {
            println!(r#"{{"event":"emitted","stage":"tir","text":"{}","parts":[]}}"#, "x".repeat(65 << 20));
        }
        "emit" => {
            let part = r#"{"name":"relu","start_line":1,"end_line":3,"places":[{"line":23,"column":9,"end_line":23,"end_column":25}]}"#;
            println!(r#"{{"event":"checked","seconds":0.001}}"#);
            println!(r#"{{"event":"emitted","stage":"tir","text":"{}\n","parts":[{part}]}}"#, "x".repeat(3 << 20));
        }
        "fail" => {
            println!(r#"{{"event":"run-failed","message":"index 9 of 4","file":"/a/net.rx","line":3,"column":9}}"#);
            std::process::exit(1);
        }
        "crash" => {
            eprintln!("memory allocation of 99 bytes failed");
            std::process::abort();
        }
        "garbage" => {
            std::io::stdout()
                .write_all(&[b"\xff\0{}[".repeat(1 << 19), b"\n{\"event\":7}\n[1]\n{".to_vec()].concat())?;
        }
        // Wait until the test closes the socket, so that a failed test leaves no process running.
        _ => {
            println!(r#"{{"event":"building","done":1,"total":2}}"#);
            match test {
                Some(mut socket) => drop(socket.read(&mut [0])),
                None => std::thread::park(),
            }
        }
    }
    Ok(())
}
