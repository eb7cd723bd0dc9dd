//! Tests that mistakes of a settings file and of the operators that it declares are reported together.

use rx_db::Project;
use rx_settings::SettingsFile;
use std::path::Path;

#[test]
fn mistakes_of_settings_and_operators_are_reported_together() {
    let text = "[[ops]]\nname = \"my.op\"\nargs = []\nresult = \"R.Tensr\"\n\n[tvm]\nversion = 1\n";
    let (settings, mistakes) = rx_settings::read(text, Path::new("/"));
    let project = Project::new(SettingsFile { settings, mistakes, ..SettingsFile::default() });
    let lines = project.file.mistakes.iter().map(|it| text[..it.primary.start as usize].lines().count());
    assert_eq!(lines.collect::<Vec<_>>(), [4, 7]);
}
