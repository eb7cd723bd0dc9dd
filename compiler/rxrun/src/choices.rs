//! The options of a run: from the command line, otherwise from `[run]` in `rx.toml`.

use crate::args::{Args, Device};
use clap::ValueEnum;
use rx_settings::SettingsFile;
use std::path::{Path, PathBuf};

/// The options of a run.
pub struct Choices {
    /// The files with the parameters' values. Where two have the same parameter, the later one is used.
    pub arrays: Vec<Source>,
    /// How many of `arrays`, from the first, come from `rx.toml`.
    pub settled: usize,
    /// Seed of the values of parameters that have no array.
    pub seed: u64,
    /// Values of symbolic dims. Where two name the same dim, the later one is used.
    pub dims: Vec<(String, i64)>,
    /// Where to run.
    pub device: Device,
}

/// A file with values of parameters.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// A file with several arrays, matched by name.
    Many(PathBuf),
    /// A file of weights, matched by name.
    Weights(PathBuf),
    /// A parameter's name, and the file of its array.
    One(String, PathBuf),
}

impl Choices {
    /// Collects the options for `program`. Paths in the settings file are relative to its folder.
    pub fn new(args: &Args, settings: &SettingsFile, program: &Path) -> Choices {
        let said = settings.settings.run(program);
        let folder = settings.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let in_folder = |path: &PathBuf| folder.join(path);
        let files = said.inputs.iter().flatten().map(|path| Source::Many(in_folder(path)));
        let single = said.input.iter().map(|(name, path)| Source::One(name.clone(), in_folder(path)));
        let mut arrays: Vec<Source> = files.chain(single).collect();
        let settled = arrays.len();
        arrays.extend(args.inputs.iter().cloned().map(Source::Many));
        arrays.extend(args.weight_files().cloned().map(Source::Weights));
        arrays.extend(args.input.iter().map(|(name, path)| Source::One(name.clone(), path.clone())));
        let device = said.device.and_then(|word| Device::from_str(word, false).ok());
        Choices {
            arrays,
            settled,
            seed: args.seed.or(said.seed).unwrap_or(0),
            dims: said.dims.into_iter().chain(args.dims.iter().cloned()).collect(),
            device: args.device.or(device).unwrap_or(Device::Auto),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Choices, Source};
    use crate::args::{Args, Device};
    use clap::{Parser, ValueEnum};
    use rx_settings::SettingsFile;
    use std::path::Path;

    fn choices(toml: &str, words: &[&str]) -> Choices {
        let (settings, mistakes) = rx_settings::read(toml, Path::new("/project"));
        assert_eq!(mistakes, []);
        let file = SettingsFile { path: Some("/project/rx.toml".into()), settings, ..SettingsFile::default() };
        let args = Args::parse_from([&["rxrun", "/project/nets/a.rx"], words].concat());
        Choices::new(&args, &file, Path::new("/project/nets/a.rx"))
    }

    #[test]
    fn settings_know_every_device() {
        let known = Device::value_variants()
            .iter()
            .filter_map(|device| Some(device.to_possible_value()?.get_name().to_owned()));
        assert_eq!(known.collect::<Vec<_>>(), rx_settings::keys::DEVICES);
    }

    #[test]
    fn command_line_overrides_the_file() {
        let toml =
            "run = { inputs = ['d.npz'], input = { x = 'x.npy' }, seed = 7, dims = { n = 4 }, device = 'interp' }";
        let file = choices(toml, &[]);
        assert_eq!((file.seed, file.device), (7, Device::Interp));
        assert_eq!(file.dims, [("n".to_owned(), 4)]);
        let many = |path: &str| Source::Many(path.into());
        let one = |path: &str| Source::One("x".into(), path.into());
        assert_eq!(file.arrays, [many("/project/d.npz"), one("/project/x.npy")]);
        let words = ["--seed", "1", "--device", "cpu", "--dim", "n=5", "--inputs", "e.npz", "--input", "x=y.npy"];
        let both = choices(toml, &words);
        assert_eq!((both.seed, both.device), (1, Device::Cpu));
        assert_eq!(both.dims.last(), Some(&("n".to_owned(), 5)));
        assert_eq!((both.settled, both.arrays.len()), (2, 4));
        assert_eq!(both.arrays[2..], [many("e.npz"), one("y.npy")]);
        let none = choices("", &[]);
        assert_eq!((none.seed, none.device, none.arrays.len()), (0, Device::Auto, 0));
    }

    #[test]
    fn overrides_replace_run_settings_of_matching_files() {
        let toml = "run = { inputs = ['d.npz'], dims = { n = 4, m = 1 }, seed = 7 }\n\
                    [[overrides]]\nfiles = ['nets']\nrun = { inputs = [], dims = { n = 9 } }\n\
                    [[overrides]]\nfiles = ['others']\nrun.seed = 8\n";
        let there = choices(toml, &[]);
        assert_eq!((there.arrays.len(), there.seed), (0, 7));
        assert_eq!(there.dims, [("m".to_owned(), 1), ("n".to_owned(), 9)]);
    }
}
