//! The disk with the evidence fills up in the middle of a run.

use crate::drills::Site;
use crate::lab::Ran;
use crate::skip::skip;
use crate::truth::{assert_healthy, missing};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn a_disk_that_fills_up_ends_the_run_unfaulted_and_recover_finishes_it() {
    let site = Site::standing();
    let disk = match SmallDisk::mount(site.lab.root().join("disk")) {
        Ok(disk) => disk,
        Err(why) => {
            let name = "a_disk_that_fills_up_ends_the_run_unfaulted_and_recover_finishes_it";
            return skip(name, &format!("a small disk can't be mounted: {why}"));
        }
    };
    let mut run = site.start_in(&disk.0.join("run"), "standing.yaml", &["--set", "faulted=3s"], "");
    run.reached("injectionVerified", 1);
    let filler = fill_up(&disk.0);
    let ended = run.ended_with(4);
    for words in ["no space", "free some space", &format!("quakeproof recover {}", run.id())] {
        assert!(ended.stderr.contains(words), "no {words:?} in {}", ended.stderr);
    }
    // Without a word in the journal, but not without an undo.
    assert_healthy(&site);
    site.lap("the disk was full");

    fs::remove_file(filler).unwrap();
    site.recover(&run, 2);
    assert_eq!(run.report()["outcome"], "recovered");
    assert_eq!(missing(&site, &run), [].into());
    assert_healthy(&site);
    site.lap("recovered with space");
}

/// A file system of 160 MiB, more than a run asks for before it begins; unmounted at its end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf) -> Result<Self, String> {
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        let ran = Ran::of(mount.args(["-t", "tmpfs", "-o", "size=160m", "tmpfs"]).arg(&at));
        if ran.code == Some(0) { Ok(Self(at)) } else { Err(ran.stderr) }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What keeps it busy ends with the run; lazily, so that a failed test leaves no mount either.
        Ran::of(Command::new("umount").arg("--lazy").arg(&self.0));
    }
}

fn fill_up(disk: &Path) -> PathBuf {
    let path = disk.join("filler");
    let mut file = File::create(&path).unwrap();
    for size in [65536, 1] {
        let chunk = vec![0_u8; size];
        loop {
            match file.write_all(&chunk) {
                Err(e) if e.kind() == ErrorKind::StorageFull => break,
                other => other.unwrap(),
            }
        }
    }
    path
}
