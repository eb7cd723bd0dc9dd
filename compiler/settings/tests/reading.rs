//! Tests of `rx.toml`: its settings, its mistakes, and which one applies to a file.

use rx_base::{Code, Severity, TvmVersion};
use rx_settings::{Choice, Finder, Level, RawValue, Settings};
use std::fs;
use std::path::Path;

/// Returns the mistakes of a text: the code, the marked words, the message, and the help.
fn mistakes(text: &str) -> Vec<String> {
    let (_, mistakes) = rx_settings::read(text, Path::new("/project"));
    let line = |mistake: rx_base::Diagnostic<rx_base::Span>| {
        let place = &text[mistake.primary.range()];
        let help = mistake.help.iter().chain(&mistake.notes).map(|line| format!(" ({line})")).collect::<String>();
        format!("{} `{place}`: {}{help}", mistake.code, mistake.message)
    };
    mistakes.into_iter().map(line).collect()
}

fn settings(text: &str) -> Settings {
    let (settings, mistakes) = rx_settings::read(text, Path::new("/project"));
    assert_eq!(mistakes, []);
    settings
}

fn level(settings: &Settings, file: &str, code: Code) -> Option<Level> {
    settings.severities(Path::new(file), &Choice::default()).of(code)
}

#[test]
fn empty_file_sets_nothing() {
    let settings = settings("");
    assert!(settings.takes(Path::new("/project/a.rx"), true) && !settings.takes(Path::new("/project/a.txt"), false));
    assert_eq!((settings.error_on_warning, settings.hints, settings.tvm_version), (false, false, None));
}

#[test]
fn every_key_is_read() {
    let settings = settings(
        "include = ['*.rx', 'dumps/*.txt']\nexclude = ['old']\nerror-on-warning = true\nhints = true\n\
         severity = { RX06 = 'off', take-index-maybe-out-of-bounds = 'error' }\ntvm.version = '0.27'\n\
         [[overrides]]\nfiles = ['generated']\nseverity.RX0651 = 'hint'\n\
         [[ops]]\nname = 'my.op'\nranks = [1, 99999999999999999999]\n",
    );
    let takes = |file: &str| settings.takes(Path::new(file), false);
    assert!(takes("/project/nets/a.rx") && takes("/project/dumps/a.txt") && !takes("/project/a.txt"));
    assert!(!takes("/project/nets/old/a.rx") && settings.excludes(Path::new("/project/nets/old")));
    assert_eq!((settings.error_on_warning, settings.hints), (true, true));
    assert_eq!(settings.tvm_version, Some(TvmVersion::V0_27));
    let maybe = Code::TakeIndexMaybeOutOfBounds;
    assert_eq!(level(&settings, "/project/a.rx", maybe), Some(Level::As(Severity::Error)));
    assert_eq!(level(&settings, "/project/generated/a.rx", maybe), Some(Level::As(Severity::Hint)));
    assert_eq!(level(&settings, "/project/generated/a.rx", Code::SliceEndClamped), Some(Level::Off));
    let operator = settings.ops.first().expect("a table");
    assert_eq!(operator.get("name").map(|entry| &entry.value), Some(&RawValue::String("my.op".into())));
    let Some(RawValue::Array(ranks)) = operator.get("ranks").map(|entry| &entry.value) else { panic!("an array") };
    assert_eq!((&ranks[0].1, &ranks[1].1), (&RawValue::Integer(Some(1)), &RawValue::Integer(None)));
}

#[test]
fn run_table_is_read() {
    let text = "[run]\ninputs = ['d.npz']\ninput = { x = 'x.npy', y = 'y.npy' }\nseed = 7\ndims = { n = 4 }\ndevice = 'cuda-sim'\n\
                [[overrides]]\nfiles = ['nets']\n[overrides.run]\ninput = { y = 'z.npy' }\nseed = 0\n";
    let settings = settings(text);
    let all = settings.run(Path::new("/project/a.rx"));
    assert_eq!((all.inputs, all.seed, all.device), (Some(vec!["d.npz".into()]), Some(7), Some("cuda-sim")));
    assert_eq!(all.dims, [("n".to_owned(), 4)]);
    let some = settings.run(Path::new("/project/nets/a.rx"));
    assert_eq!(some.input, [("x".to_owned(), "x.npy".into()), ("y".to_owned(), "z.npy".into())]);
    assert_eq!((some.inputs.map(|files| files.len()), some.seed), (Some(1), Some(0)));
}

#[test]
fn mistakes_in_the_run_table_have_places() {
    let cases = [
        ("run = 3", "RX0003 `3`: `run` takes a table; this is an integer"),
        ("run.seed = -1", "RX0003 `-1`: `run.seed` takes an integer of 0 or more that fits 64 bits; this is -1"),
        ("run.seed = '7'", "RX0003 `'7'`: `run.seed` takes an integer of 0 or more; this is a string"),
        ("run.inputs = 'd.npz'", "RX0003 `'d.npz'`: `run.inputs` takes an array of strings; this is a string"),
        ("run.inputs = ['']", "RX0003 `''`: `run.inputs`: a path has at least one character"),
        ("run.input = { x = 1 }", "RX0003 `1`: `run.input.x` takes a string; this is an integer"),
        ("run.dims = { n = 1.5 }", "RX0003 `1.5`: `run.dims.n` takes an integer of 0 or more; this is a number"),
        (
            "run.device = 'gpu'",
            "RX0003 `'gpu'`: `run.device` takes `\"auto\"`, `\"cpu\"`, `\"cuda\"`, `\"interp\"` or `\"cuda-sim\"`; this is `\"gpu\"` \
             (did you mean `cpu`?)",
        ),
        ("run.devise = 'cpu'", "RX0002 `devise`: `run` has no key `devise` (did you mean `device`?)"),
    ];
    for (text, expected) in cases {
        assert_eq!(mistakes(text), [expected], "{text}");
    }
    assert_eq!(mistakes("run.dims = { n = 99999999999999999999 }").len(), 1);
}

#[test]
fn invalid_toml_is_one_mistake() {
    let found = mistakes("include = [\nseverity = 1\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("RX0001 `"), "{found:?}");
    assert!(mistakes("hints = true\nhints = true\n")[0].contains("duplicate key"));
}

#[test]
fn unknown_keys_have_suggestions() {
    let found = mistakes("inclued = []\n\n[tvm]\nverison = '0.27'\nflags = 1\n[overides]\n");
    let wanted = [
        "RX0002 `inclued`: rx.toml has no key `inclued` (did you mean `include`?)",
        "RX0002 `verison`: `tvm` has no key `verison` (did you mean `version`?)",
        "RX0002 `flags`: `tvm` has no key `flags` (its keys are `version`)",
        "RX0002 `overides`: rx.toml has no key `overides` (did you mean `overrides`?)",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn values_are_of_their_kind() {
    let wanted = [
        "RX0003 `'*.rx'`: `include` takes an array of strings; this is a string",
        "RX0003 `1`: `exclude` takes strings; this is an integer",
        "RX0003 `'a**'`: `a**` is no pattern: recursive wildcards must form a single path component (at character 1)",
        "RX0003 `'yes'`: `hints` takes `true` or `false`; this is a string",
        "RX0003 `'new'`: `tvm.version`: `new` is no release of TVM; rx knows the limits of 0.25, 0.26, 0.27",
        "RX0003 `[[overrides]]`: `overrides` needs `files`: an array of strings",
    ];
    let text = "include = '*.rx'\nexclude = [1, 'a**']\nhints = 'yes'\ntvm.version = 'new'\n[[overrides]]\n";
    assert_eq!(mistakes(text), wanted);
}

#[test]
fn severities_name_diagnostics_and_levels() {
    let wanted = [
        "RX0003 `RX9999`: no diagnostic is called `RX9999`",
        "RX0003 `dtype-mismach`: no diagnostic is called `dtype-mismach` (did you mean `dtype-mismatch`?)",
        "RX0003 `'of'`: `severity.RX0651` takes `\"error\"`, `\"warning\"`, `\"info\"`, `\"hint\"` or `\"off\"`; this is \
         `\"of\"` (did you mean `off`?)",
        "RX0003 `syntax-error`: the severity of `syntax-error` cannot be chosen: unreadable text is always an error",
        "RX0003 `3`: `severity.RX05` takes `\"error\"`, `\"warning\"`, `\"info\"`, `\"hint\"` or `\"off\"`; this is an integer",
    ];
    let text = "[severity]\nRX9999 = 'off'\ndtype-mismach = 'off'\nRX0651 = 'of'\nsyntax-error = 'off'\nRX05 = 3\n";
    assert_eq!(mistakes(text), wanted);
}

#[test]
fn fixes_make_the_file_right() {
    let text = "\u{FEFF}inclued = []\n[severity]\nrx0651 = 'off'\nRX0652 = 'warn'\nRX0653 = 'hintt'\n";
    let text = text.replace("RX0653", "RX0601").replace("'warn'", "'warnin'");
    let (_, found) = rx_settings::read(&text, Path::new("/"));
    assert_eq!(found.len(), 4, "{found:?}");
    let mut fixed = text.clone();
    for mistake in found.iter().rev() {
        let (place, new) = &mistake.fixes[0].edits[0];
        fixed.replace_range(place.range(), new);
    }
    assert_eq!(settings(&fixed).severity.0.len(), 3, "{fixed}");
}

#[test]
fn nearest_file_is_used() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("nets/old/deep")).expect("folders");
    fs::write(at("rx.toml"), "hints = true\n").expect("a file");
    fs::write(at("nets/old/rx.toml"), "hints = 1\n").expect("a file");
    let mut finder = Finder::nearest();
    let nets = finder.of_file(&at("nets/a.rx")).expect("readable");
    assert_eq!((nets.path.as_deref(), nets.settings.hints), (Some(at("rx.toml").as_path()), true));
    let deep = finder.of_file(&at("nets/old/deep/a.rx")).expect("readable");
    assert_eq!((deep.path.as_deref(), deep.mistakes.len()), (Some(at("nets/old/rx.toml").as_path()), 1));
    let again = finder.of_file(&at("b.rx")).expect("readable");
    assert!(std::sync::Arc::ptr_eq(&nets, &again), "each file is read once");
    let isolated = Finder::isolated().of_file(&at("nets/a.rx")).expect("readable");
    assert_eq!((isolated.path.as_deref(), isolated.settings.hints), (None, false));
    assert!(Finder::given(&at("none.toml")).is_err());
}
