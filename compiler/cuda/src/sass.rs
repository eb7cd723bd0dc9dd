//! Disassembles machine code (SASS) with NVIDIA's separate program `nvdisasm`, which is part of the CUDA toolkit. The
//! environment variable `RX_NVDISASM` gives its path; otherwise it is searched in `PATH`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An error of the disassembler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SassError {
    /// The program is not found: its name or path.
    #[error("no disassembler: `{0}` is not found; set RX_NVDISASM to the path of nvdisasm, of the CUDA toolkit")]
    NotFound(String),
    /// The program could not be started or failed, or its input could not be written: the message.
    #[error("nvdisasm: {0}")]
    Failed(String),
}

/// Checks that the disassembler can be run.
///
/// # Errors
/// If it is not found, cannot be started or fails.
pub fn probe() -> Result<(), SassError> {
    run(&["--version"]).map(drop)
}

/// Returns the instructions of a cubin, by kernel.
///
/// # Errors
/// If the disassembler is not found, cannot be started or fails, or if the temporary file cannot be written.
pub fn disassemble(cubin: &[u8]) -> Result<BTreeMap<String, String>, SassError> {
    let file = Written::new(cubin)?;
    let text = run(&["-c", &file.0.to_string_lossy()])?;
    Ok(kernels(&text))
}

fn run(arguments: &[&str]) -> Result<String, SassError> {
    let program = std::env::var("RX_NVDISASM").ok().filter(|path| !path.is_empty());
    let program = program.unwrap_or_else(|| "nvdisasm".to_owned());
    let output = Command::new(&program).args(arguments).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => SassError::NotFound(program.clone()),
        _ => SassError::Failed(format!("{program}: {error}")),
    })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(SassError::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

/// Returns the sections `.text.NAME` in the output of the disassembler, by `NAME`. Empty lines and `.section`
/// directives are dropped.
fn kernels(text: &str) -> BTreeMap<String, String> {
    let mut kernels = BTreeMap::new();
    let mut open: Option<&mut String> = None;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("//-----") {
            let name = title.trim_matches(['-', ' ']).strip_prefix(".text.");
            open = name.map(|name| kernels.entry(name.trim().to_owned()).or_default());
        } else if let Some(text) = &mut open
            && !line.trim().is_empty()
            && !line.trim_start().starts_with(".section")
        {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    kernels
}

/// A temporary file with the input of the disassembler, which only reads files. The file is removed on drop.
struct Written(PathBuf);

impl Written {
    fn new(bytes: &[u8]) -> Result<Written, SassError> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rx-{}-{number}.cubin", std::process::id()));
        let failed = |error| SassError::Failed(format!("{}: {error}", path.display()));
        std::fs::write(&path, bytes).map_err(failed)?;
        Ok(Written(path))
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // If the file cannot be removed, the system's cleaning of temporary files removes it.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::kernels;

    #[test]
    fn each_kernel_has_its_instructions() {
        let text = "\t.headerflags\t@\"EF_CUDA_SM80\"\n\n//--------------------- .text.add_kernel  --------------------------\n\
                    \t.section\t.text.add_kernel,\"ax\",@progbits\nadd_kernel:\n.text.add_kernel:\n        /*0000*/   EXIT ;\n\n\
                    //--------------------- .nv.shared --------------------------\n\t.zero 4\n\
                    //--------------------- .text.b  --------------------------\nb:\n        /*0000*/   BRA `(.L_x_0) ;\n";
        let found: Vec<(String, String)> = kernels(text).into_iter().collect();
        let [(add, code), (b, _)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((add.as_str(), b.as_str()), ("add_kernel", "b"));
        assert_eq!(code, "add_kernel:\n.text.add_kernel:\n        /*0000*/   EXIT ;\n");
    }
}
